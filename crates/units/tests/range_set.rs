//! A set of ranges against a set of numbers.

use std::collections::BTreeSet;
use std::ops::Range;

use mqttlab_units::RangeSet;
use proptest::prelude::*;

/// What is done to a set.
#[derive(Clone, Debug)]
enum Act {
    Insert(Range<u64>),
    TakeFrom(u64),
}

fn any_range() -> impl Strategy<Value = Range<u64>> {
    (0..60u64, 0..12u64).prop_map(|(start, length)| start..start + length)
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![6 => any_range().prop_map(Act::Insert), 1 => (0..60u64).prop_map(Act::TakeFrom)]
}

/// Takes what continues `frontier` out of the set of numbers.
fn take_from(numbers: &mut BTreeSet<u64>, mut frontier: u64) -> u64 {
    while numbers.contains(&frontier) {
        frontier += 1;
    }
    // A range that begins before the frontier goes as a whole.
    *numbers = numbers.split_off(&frontier);
    frontier
}

/// The numbers as ranges.
fn ranges(numbers: &BTreeSet<u64>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => ranges.push(number..number + 1),
        }
    }
    ranges
}

proptest! {
    #[test]
    fn it_holds_what_a_set_of_numbers_holds(
        acts in proptest::collection::vec(any_act(), 1..40),
        asked in any_range(),
        position in 0..80u64,
    ) {
        let (mut set, mut numbers) = (RangeSet::new(), BTreeSet::new());
        for act in acts {
            match act {
                Act::Insert(range) => {
                    numbers.extend(range.clone());
                    let whole = set.insert(range.clone());
                    prop_assert!(whole.start <= range.start && range.end <= whole.end);
                    prop_assert!(range.is_empty() || ranges(&numbers).contains(&whole));
                }
                Act::TakeFrom(frontier) => {
                    prop_assert_eq!(set.take_from(frontier), take_from(&mut numbers, frontier));
                }
            }
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), ranges(&numbers));
            prop_assert_eq!(set.len(), ranges(&numbers).len());
        }
        prop_assert_eq!(set.contains(&asked), asked.clone().all(|number| numbers.contains(&number)));
        prop_assert_eq!(set.range_at(position), ranges(&numbers).into_iter().find(|range| range.contains(&position)));
        let missing: BTreeSet<u64> = asked.clone().filter(|number| !numbers.contains(number)).collect();
        prop_assert_eq!(set.gaps(asked).collect::<Vec<_>>(), ranges(&missing));
    }
}
