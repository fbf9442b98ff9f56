//! The texts that JAX, its users or its tests know, each in one place.

/// How a plugin refuses a buffer that is gone.
pub(crate) const GONE: &str = "Buffer has been deleted or donated.";

/// An argument of a run is gone.
pub(crate) fn gone_argument(argument: usize, replica: usize) -> String {
    format!(
        "Invalid buffer passed to Execute() as argument {argument} to replica {replica}: \
         INVALID_ARGUMENT: {GONE}"
    )
}

/// One use of a buffer in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferUse {
    pub(crate) argument: usize,
    pub(crate) donated: bool,
}

/// A run names a buffer twice and donates it. `None` if neither use donates it.
pub(crate) fn donation_clash(
    first: BufferUse,
    again: BufferUse,
    partition: usize,
) -> Option<String> {
    let (what, example) = match (first.donated, again.donated) {
        (true, true) => (
            "donate the same buffer twice in Execute()",
            "f(donate(a), donate(a))",
        ),
        (false, true) => (
            "donate a buffer which is also used by the same call to Execute()",
            "f(a, donate(a))",
        ),
        (true, false) => (
            "use a buffer that was previously donated in the same call to Execute()",
            "f(donate(a), a)",
        ),
        (false, false) => return None,
    };
    Some(format!(
        "Attempt to {what} (flattened argument {}, replica 0, partition {partition}, first use: \
         {}). Toy example for this bug: `{example}`.",
        again.argument, first.argument
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_those_that_jax_users_see() {
        assert_eq!(
            gone_argument(0, 0),
            "Invalid buffer passed to Execute() as argument 0 to replica 0: INVALID_ARGUMENT: \
             Buffer has been deleted or donated."
        );
        let at = |argument, donated| BufferUse { argument, donated };
        assert_eq!(
            donation_clash(at(0, true), at(1, false), 0).as_deref(),
            Some(
                "Attempt to use a buffer that was previously donated in the same call to Execute() \
                 (flattened argument 1, replica 0, partition 0, first use: 0). Toy example for \
                 this bug: `f(donate(a), a)`."
            )
        );
        assert!(
            donation_clash(at(0, true), at(1, true), 0)
                .is_some_and(|text| text.starts_with("Attempt to donate the same buffer twice"))
        );
        assert!(
            donation_clash(at(2, false), at(5, true), 0)
                .is_some_and(|text| text.ends_with("`f(a, donate(a))`."))
        );
        assert_eq!(donation_clash(at(0, false), at(1, false), 0), None);
    }
}
