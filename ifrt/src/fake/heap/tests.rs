use super::*;
use crate::fake::{FakeClient, FakeOptions};
use crate::host_buffer::HostValue;
use crate::{Client, Code};

fn buffer(heap: &Arc<Heap>, bytes: u64) -> Arc<Buffer> {
    let client = FakeClient::new(FakeOptions::default());
    let device = Arc::clone(&client.devices()[0]);
    let spec = ShardSpec {
        memory: device.default_memory().unwrap(),
        device,
        dtype: DType::U8,
        shape: Shape::scalar(),
        bytes,
    };
    let value = HostValue::Bytes(bytes::Bytes::new());
    heap.allocate(spec, Completion::ready(Ok(value)))
}

fn faults() -> FaultPlan {
    FaultPlan::new()
}

#[test]
fn memory_is_counted_and_bounded() {
    let heap = Heap::new(10);
    let one = buffer(&heap, 6);
    assert_eq!((heap.live_bytes(), heap.live_buffers()), (6, 1));
    heap.check_room(4).unwrap();
    let full = heap.check_room(5).unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted);
    assert_eq!(
        full.message(),
        "Out of memory allocating 5 bytes: 6 of 10 bytes are in use"
    );
    assert!(heap.check_room(u64::MAX).is_err());
    drop(one);
    assert_eq!((heap.live_bytes(), heap.live_buffers()), (0, 0));
    assert_eq!(heap.delete_counts(), DeleteCounts::default());
}

#[test]
fn deleting_one_holder_kills_the_buffers_of_the_other() {
    let heap = Heap::new(u64::MAX);
    let buffers = [buffer(&heap, 1), buffer(&heap, 2)];
    let (both, second) = (heap.register_array(), heap.register_array());
    let both = Holder {
        id: both,
        buffers: &buffers,
    };
    let second = Holder {
        id: second,
        buffers: &buffers[1..],
    };
    assert_eq!(heap.delete(second, &faults()).peek(), Some(Ok(())));
    assert!(!heap.is_live(second) && !heap.is_live(both));
    assert_eq!(heap.live_bytes(), 1);
    assert_eq!(heap.delete(both, &faults()).peek(), Some(Ok(())));
    assert_eq!(heap.live_bytes(), 0);
    assert_eq!(
        heap.delete_counts(),
        DeleteCounts {
            total: 2,
            most_of_one_buffer: 1
        }
    );
}

#[test]
fn donation_takes_all_or_nothing() {
    let heap = Heap::new(u64::MAX);
    let (one, two) = ([buffer(&heap, 1)], [buffer(&heap, 2)]);
    let holder = |buffers| Holder {
        id: heap.register_array(),
        buffers,
    };
    let (a, b, alias_of_a) = (holder(&one), holder(&two), holder(&one));

    let twice = heap.take(&[(a, true), (b, false), (a, false)]);
    assert!(matches!(twice, Err(Unusable::DonatedTwice(2))));
    let alias = heap.take(&[(alias_of_a, false), (a, true)]);
    assert!(matches!(alias, Err(Unusable::DonatedTwice(1))));
    assert_eq!(heap.take(&[(a, false), (a, false)]).unwrap().len(), 2);

    heap.delete(b, &faults()).detach();
    let dead = heap.take(&[(a, true), (b, true)]);
    assert!(matches!(dead, Err(Unusable::Dead(1))));
    assert!(heap.is_live(a), "a failed donation leaves the others alive");

    heap.take(&[(a, true)]).unwrap();
    assert!(!heap.is_live(a) && !heap.is_live(alias_of_a));
    assert_eq!(heap.live_bytes(), 0);
    assert_eq!(heap.delete(a, &faults()).peek(), Some(Ok(())));
    assert_eq!(heap.delete_counts().total, 1, "only b was deleted");
}

#[test]
fn an_array_without_shards_dies_too() {
    let heap = Heap::new(u64::MAX);
    let holder = Holder {
        id: heap.register_array(),
        buffers: &[],
    };
    assert!(heap.is_live(holder));
    assert!(heap.take(&[(holder, true), (holder, true)]).is_err());
    heap.take(&[(holder, true)]).unwrap();
    assert!(!heap.is_live(holder));
    let other = Holder {
        id: heap.register_array(),
        buffers: &[],
    };
    assert_eq!(heap.delete(other, &faults()).peek(), Some(Ok(())));
    assert!(!heap.is_live(other));
}
