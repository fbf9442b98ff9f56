use ifrt::Code;

use super::*;

fn upload(buffers: &Arc<HostBuffers>, handle: u64, data: &[u8]) {
    let size = i64::try_from(data.len()).unwrap();
    let mut upload = buffers.begin_upload(handle, size).unwrap();
    for chunk in data.chunks(3) {
        upload.push(chunk).unwrap();
    }
    upload.finish().unwrap();
}

fn bytes_held(buffers: &HostBuffers) -> u64 {
    buffers.lock().bytes
}

#[test]
fn bytes_are_taken_once() {
    let buffers = HostBuffers::new(100);
    upload(&buffers, 1, b"0123456789");
    assert_eq!(bytes_held(&buffers), 10);
    assert_eq!(
        buffers.begin_upload(1, 3).unwrap_err().code(),
        Code::AlreadyExists
    );
    assert_eq!(&buffers.take(1).unwrap()[..], b"0123456789");
    assert_eq!(bytes_held(&buffers), 0);
    assert_eq!(buffers.get(1).unwrap_err().code(), Code::NotFound);
}

#[test]
fn the_user_may_come_first() {
    let buffers = HostBuffers::new(100);
    let waiting = std::thread::spawn({
        let buffers = Arc::clone(&buffers);
        move || buffers.take(5)
    });
    upload(&buffers, 4, b"other");
    upload(&buffers, 5, b"mine");
    assert_eq!(&waiting.join().unwrap().unwrap()[..], b"mine");
}

#[test]
fn the_end_of_the_session_ends_the_waiting() {
    let buffers = HostBuffers::new(100);
    let waiting = std::thread::spawn({
        let buffers = Arc::clone(&buffers);
        move || buffers.take(5)
    });
    upload(&buffers, 4, b"left");
    assert_eq!(buffers.end(), ["left"]);
    assert_eq!(waiting.join().unwrap().unwrap_err().code(), Code::Cancelled);
    assert_eq!(
        buffers.begin_upload(6, 0).unwrap_err().code(),
        Code::Cancelled
    );
    assert_eq!(
        buffers.put(6, Bytes::new()).unwrap_err().code(),
        Code::Cancelled
    );
}

#[test]
fn a_wrong_number_of_bytes_fails_sender_and_user() {
    for sent in [&b"ab"[..], b"abcd"] {
        let buffers = HostBuffers::new(100);
        let mut upload = buffers.begin_upload(1, 3).unwrap();
        let error = upload
            .push(sent)
            .and_then(|()| upload.finish())
            .unwrap_err();
        assert_eq!(error.code(), Code::DataLoss);
        assert_eq!(buffers.take(1).unwrap_err(), error);
        assert_eq!(bytes_held(&buffers), 0);
    }
}

#[test]
fn an_upload_that_breaks_off_fails_the_user() {
    let buffers = HostBuffers::new(100);
    drop(buffers.begin_upload(1, 3).unwrap());
    assert_eq!(buffers.take(1).unwrap_err().code(), Code::Cancelled);
}

#[test]
fn beyond_the_limit_the_upload_succeeds_and_the_user_fails() {
    let buffers = HostBuffers::new(10);
    upload(&buffers, 1, b"12345678");
    upload(&buffers, 2, b"123");
    assert_eq!(buffers.take(2).unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(bytes_held(&buffers), 8);
    assert_eq!(
        buffers
            .put(3, Bytes::from_static(b"123"))
            .unwrap_err()
            .code(),
        Code::ResourceExhausted
    );
    drop(buffers.take(1).unwrap());
    upload(&buffers, 4, b"123");
    assert_eq!(&buffers.take(4).unwrap()[..], b"123");
    // More than any machine has, within the limit of the session.
    let buffers = HostBuffers::new(u64::MAX);
    drop(buffers.begin_upload(1, i64::MAX).unwrap());
    assert!(buffers.take(1).is_err());
    assert_eq!(bytes_held(&buffers), 0);
}

#[test]
fn unwanted_bytes_are_not_kept() {
    let buffers = HostBuffers::new(100);
    // Before, during and after the upload.
    buffers.abandon(1);
    upload(&buffers, 1, b"abc");
    let mut during = buffers.begin_upload(2, 3).unwrap();
    buffers.abandon(2);
    during.push(b"abc").unwrap();
    during.finish().unwrap();
    upload(&buffers, 3, b"abc");
    buffers.abandon(3);
    assert_eq!(bytes_held(&buffers), 0);
    assert!(buffers.lock().slots.is_empty());
}

#[test]
fn what_is_read_stays_until_it_is_removed() {
    let buffers = HostBuffers::new(100);
    buffers.check_new(1).unwrap();
    buffers.put(1, Bytes::from_static(b"abc")).unwrap();
    assert_eq!(
        buffers.check_new(1).unwrap_err().code(),
        Code::AlreadyExists
    );
    assert_eq!(buffers.get(1).unwrap(), buffers.get(1).unwrap());
    assert_eq!(buffers.remove(1).unwrap(), "abc");
    assert_eq!(buffers.remove(1).unwrap_err().code(), Code::NotFound);
}

#[test]
fn handles_and_sizes_that_cannot_be() {
    let buffers = HostBuffers::new(100);
    for (handle, size) in [(0, 1), (1 << 48, 1), (1, -1)] {
        let error = buffers.begin_upload(handle, size).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
}
