//! [`Doomed`]: arrays that are to be deleted and handles that are to be forgotten.

use std::collections::HashSet;

use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::{DeleteArrayRequest, DestructArrayRequest};

/// The handles in one request. A server may take a long request for a mistake.
const MAX_HANDLES: usize = 1 << 16;

/// Arrays that are to be deleted and handles that are to be forgotten.
#[derive(Debug, Default)]
pub(super) struct Doomed {
    deletions: HashSet<u64>,
    destructions: Vec<u64>,
}

impl Doomed {
    pub(super) fn is_empty(&self) -> bool {
        self.deletions.is_empty() && self.destructions.is_empty()
    }

    pub(super) fn delete(&mut self, handle: u64) {
        self.deletions.insert(handle);
    }

    /// The last reference to buffers deletes them, so a deletion that has not been sent yet is not
    /// needed any more if there is no other reference.
    pub(super) fn destruct(&mut self, handle: u64, owns_buffers: bool) {
        if owns_buffers {
            self.deletions.remove(&handle);
        }
        self.destructions.push(handle);
    }

    /// The requests, with what to call them. An array is deleted before it is forgotten.
    pub(super) fn into_requests(self) -> Vec<(&'static str, Request)> {
        let deletions: Vec<u64> = self.deletions.into_iter().collect();
        let delete = deletions.chunks(MAX_HANDLES).map(|handles| {
            let array_handle = handles.to_vec();
            let request = Request::DeleteArrayRequest(DeleteArrayRequest { array_handle });
            ("deleting arrays", request)
        });
        let destruct = self.destructions.chunks(MAX_HANDLES).map(|handles| {
            let array_handle = handles.to_vec();
            let request = Request::DestructArrayRequest(DestructArrayRequest { array_handle });
            ("forgetting arrays", request)
        });
        delete.chain(destruct).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handles(doomed: Doomed) -> Vec<(bool, Vec<u64>)> {
        let handles = |(_, request)| match request {
            Request::DeleteArrayRequest(request) => {
                let mut handles = request.array_handle;
                handles.sort_unstable();
                (true, handles)
            }
            Request::DestructArrayRequest(request) => (false, request.array_handle),
            other => panic!("{other:?}"),
        };
        doomed.into_requests().into_iter().map(handles).collect()
    }

    #[test]
    fn nothing_is_no_request() {
        assert!(Doomed::default().is_empty());
        assert_eq!(handles(Doomed::default()), []);
    }

    #[test]
    fn an_owner_that_is_forgotten_needs_no_deletion() {
        let mut doomed = Doomed::default();
        doomed.delete(1);
        doomed.delete(2);
        doomed.delete(3);
        doomed.destruct(1, true);
        doomed.destruct(2, false);
        let expected = [(true, vec![2, 3]), (false, vec![1, 2])];
        assert_eq!(handles(doomed), expected);
    }

    #[test]
    fn long_lists_are_split() {
        let mut doomed = Doomed::default();
        for handle in 0..100_000 {
            doomed.destruct(handle, true);
        }
        let lengths: Vec<usize> = handles(doomed).iter().map(|(_, all)| all.len()).collect();
        assert_eq!(lengths, [MAX_HANDLES, 100_000 - MAX_HANDLES]);
    }
}
