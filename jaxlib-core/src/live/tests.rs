use super::*;

#[test]
fn places_are_used_again() {
    let registry = Registry::default();
    let held: Vec<Arc<u32>> = (0..5).map(Arc::new).collect();
    let places: Vec<Place> = held
        .iter()
        .map(|one| registry.add(Arc::downgrade(one)))
        .collect();
    assert_eq!(registry.all().len(), 5);
    registry.remove(places[1]);
    registry.remove(places[3]);
    let six = Arc::new(6);
    registry.add(Arc::downgrade(&six));
    let mut found: Vec<u32> = registry.all().iter().map(|one| **one).collect();
    found.sort_unstable();
    assert_eq!(found, [0, 2, 4, 6]);
    let lists = registry.parts.iter();
    let longest = lists.map(|part| part.lock().entries.len()).max();
    assert_eq!(longest, Some(5));
    drop(held);
    assert_eq!(registry.all().len(), 1, "nobody holds the others");
}
