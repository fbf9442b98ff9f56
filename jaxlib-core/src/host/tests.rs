use super::*;

fn numbered(dims: &[i64]) -> HostBuffer<'static> {
    let shape = Shape::new(dims).unwrap();
    let count = u8::try_from(shape.num_elements()).unwrap();
    HostBuffer::dense(
        HostData::Shared((0..count).collect::<Vec<u8>>().into()),
        DType::U8,
        shape,
    )
}

fn bytes(buffer: &HostBuffer<'_>) -> Vec<u8> {
    match &buffer.data {
        HostData::Borrowed(data) => data.to_vec(),
        HostData::Shared(data) => data.to_vec(),
        HostData::Strings(_) => panic!("strings"),
    }
}

#[test]
fn parts_are_cut_out() {
    let all = numbered(&[3, 2, 4]);
    for (index, expected) in [
        (vec![None, None, None], (0..24).collect::<Vec<u8>>()),
        (vec![Some(1..2), None, None], (8..16).collect()),
        (vec![Some(1..3), None, None], (8..24).collect()),
        (
            vec![None, Some(1..2), None],
            vec![4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23],
        ),
        (vec![None, None, Some(3..4)], vec![3, 7, 11, 15, 19, 23]),
        (vec![Some(2..3), Some(0..1), Some(1..3)], vec![17, 18]),
        (vec![Some(0..2), None, Some(0..1)], vec![0, 4, 8, 12]),
        (vec![Some(1..1), None, None], vec![]),
    ] {
        let index: Index = index.into();
        let part = part(&all, &index).unwrap();
        assert_eq!(bytes(&part), expected, "{index:?}");
        assert_eq!(part.byte_range().unwrap(), 0..expected.len(), "{index:?}");
    }
}

#[test]
fn neighbors_are_not_copied() {
    let all = numbered(&[4, 4]);
    let HostData::Shared(data) = &all.data else {
        panic!("shared")
    };
    let part = part(&all, &vec![Some(2..4), None].into()).unwrap();
    let HostData::Shared(cut) = &part.data else {
        panic!("shared")
    };
    assert_eq!(cut.as_ptr(), data[8..].as_ptr());
}

#[test]
fn a_part_outside_is_an_error() {
    assert!(part(&numbered(&[4]), &vec![Some(2..5)].into()).is_err());
    assert!(part(&numbered(&[4]), &vec![Some(-1..2)].into()).is_err());
}

#[test]
fn strings_are_cut_and_put_together() {
    let strings: Vec<Bytes> = ["a", "b", "c", "d"].map(Bytes::from).to_vec();
    let shape = Shape::new([2, 2]).unwrap();
    let all = HostBuffer::dense(
        HostData::Strings(strings.clone().into()),
        DType::String,
        shape.clone(),
    );
    let column = |n: i64| -> Index { vec![None, Some(n..n + 1)].into() };
    let parts: Vec<(Index, HostValue)> = [1, 0]
        .map(|n| match part(&all, &column(n)).unwrap().data {
            HostData::Strings(part) => (column(n), HostValue::Strings(part)),
            _ => panic!("bytes"),
        })
        .to_vec();
    let whole = assemble(&Aval::new(DType::String, shape), &parts).unwrap();
    assert_eq!(whole.value(), &HostValue::Strings(strings.into()));
}

#[test]
fn sizes_are_checked() {
    let shape = Shape::new([3]).unwrap();
    assert!(HostArray::new(DType::F32, shape.clone(), vec![0; 12]).is_ok());
    let error = HostArray::new(DType::F32, shape.clone(), vec![0; 11]).unwrap_err();
    assert_eq!(
        error.message(),
        "an array of type float32[3] does not consist of 11 bytes"
    );
    assert!(HostArray::new(DType::Token, shape, vec![]).is_err());
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// A shape, and for each dimension into how many parts it is cut.
    fn shape_and_cuts() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
        proptest::collection::vec((1_i64..4, 1_i64..4), 0..4).prop_map(|dims| {
            let sizes = dims.iter().map(|(part, cuts)| part * cuts).collect();
            (sizes, dims.iter().map(|(_, cuts)| *cuts).collect())
        })
    }

    proptest! {
        #[test]
        fn cutting_and_putting_together_gives_the_same((dims, cuts) in shape_and_cuts(), item in 0_usize..3) {
            let dtype = [DType::U8, DType::S32, DType::C128][item];
            let shape = Shape::new(dims.clone()).unwrap();
            let size = usize::try_from(shape.num_elements()).unwrap() * dtype.byte_size().unwrap();
            let data: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let all = HostBuffer::dense(HostData::Borrowed(&data), dtype, shape.clone());
            let mut places: Vec<Vec<_>> = vec![vec![]];
            for (dim, cuts) in dims.iter().zip(&cuts) {
                let step = dim / cuts;
                places = places
                    .iter()
                    .flat_map(|place| {
                        (0..*cuts).map(move |n| {
                            let mut place = place.clone();
                            place.push((*cuts > 1).then(|| n * step..(n + 1) * step));
                            place
                        })
                    })
                    .collect();
            }
            let parts: Vec<(Index, HostValue)> = places
                .into_iter()
                .map(|place| {
                    let place: Index = place.into();
                    let bytes = bytes(&part(&all, &place).unwrap());
                    (place, HostValue::Bytes(bytes.into()))
                })
                .collect();
            let whole = assemble(&Aval::new(dtype, shape), &parts).unwrap();
            prop_assert_eq!(&**whole.bytes().unwrap(), &*data);
        }
    }
}
