//! What the model does, chosen at random.

use proptest::prelude::*;

use super::ground::Place;

/// Arrays are chosen by a number modulo how many there are.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Put(Place),
    Call { donate: bool, args: (usize, usize) },
    Clone(usize),
    Alias(usize),
    Copy(usize),
    Move(usize, Place),
    DonateTo(usize, Place),
    Shards(usize),
    Assemble(usize),
    Read(usize),
    StartRead(usize),
    CopyToHost(usize),
    IsReady(usize),
    Wait(usize),
    Delete(usize),
    DeleteAll(Vec<usize>),
    Drop(usize),
}

pub(super) fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        (0_usize..3).prop_map(Place::Single),
        Just(Place::Copies(2)),
        Just(Place::Split(2)),
        Just(Place::Split(8)),
    ]
}

pub(super) fn command() -> impl Strategy<Value = Command> {
    let array = || 0_usize..1000;
    prop_oneof![
        4 => place().prop_map(Command::Put),
        4 => (any::<bool>(), (array(), array()))
            .prop_map(|(donate, args)| Command::Call { donate, args }),
        1 => array().prop_map(Command::Clone),
        2 => array().prop_map(Command::Alias),
        1 => array().prop_map(Command::Copy),
        2 => (array(), place()).prop_map(|(n, place)| Command::Move(n, place)),
        1 => (array(), place()).prop_map(|(n, place)| Command::DonateTo(n, place)),
        2 => array().prop_map(Command::Shards),
        1 => array().prop_map(Command::Assemble),
        2 => array().prop_map(Command::Read),
        1 => array().prop_map(Command::StartRead),
        1 => array().prop_map(Command::CopyToHost),
        1 => array().prop_map(Command::IsReady),
        1 => array().prop_map(Command::Wait),
        4 => array().prop_map(Command::Delete),
        1 => proptest::collection::vec(array(), 0..4).prop_map(Command::DeleteAll),
        2 => array().prop_map(Command::Drop),
    ]
}
