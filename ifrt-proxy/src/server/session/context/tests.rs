use super::*;

#[test]
fn the_last_reference_reports_once() {
    let ended = Arc::new(EndedContexts::default());
    assert!(RequestContext::of_request(0, &ended).is_none());
    let context = RequestContext::of_request(7, &ended);
    let other = RequestContext::of_request(7, &ended);
    let failure = Failure::from(Status::internal("x")).caused_by(context.as_ref());
    drop(context);
    assert!(ended.take().is_empty());
    drop(other);
    assert_eq!(ended.take(), [7]);
    drop(failure);
    assert_eq!(ended.take(), [7]);
    assert!(ended.take().is_empty());
}

#[test]
fn the_first_cause_stays() {
    let ended = Arc::new(EndedContexts::default());
    let (first, second) = (
        RequestContext::of_request(1, &ended),
        RequestContext::of_request(2, &ended),
    );
    let failure = Failure::from(Status::internal("x"))
        .caused_by(None)
        .caused_by(first.as_ref())
        .caused_by(second.as_ref());
    assert!(failure.status().payload(USER_CONTEXT_PAYLOAD).is_none());
    let failure = failure.naming_cause();
    let payload = failure.status().payload(USER_CONTEXT_PAYLOAD).unwrap();
    assert_eq!(&payload[..], b"1");
    drop((first, second));
    assert_eq!(ended.take(), [2]);
    // A status that names a cause by itself keeps it.
    let named = failure.status().clone();
    let third = RequestContext::of_request(3, &ended);
    let other = Failure::from(named.clone())
        .caused_by(third.as_ref())
        .naming_cause();
    assert_eq!(other.status(), &named);
}
