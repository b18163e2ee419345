//! What must hold for any octets, shared by the fuzz targets and the bounded test.

use std::sync::Arc;

use mqttlab_mqtt::{Kind, Qos};
use mqttlab_mqttsn::encode::{LENGTH_MAX, encode};
use mqttlab_mqttsn::gateway::{Address, BrokerPacket, Gateway, GatewayOptions, Input, Link, Mode, Output};
use mqttlab_mqttsn::packet::decode;
use mqttlab_units::{Duration, Instant};

/// A datagram is refused, or comes back the same.
pub fn decoder(bytes: &[u8]) {
    if let Ok(datagram) = decode(bytes) {
        let mut again = Vec::new();
        encode(&datagram.packet, &mut again).expect("what fitted fits again");
        assert_eq!(decode(&again).expect("our own packet").packet, datagram.packet);
    }
}

/// A gateway between hostile clients and a hostile broker: a script of two octets and what follows them each.
pub fn gateway(bytes: &[u8]) {
    for mode in [Mode::Transparent, Mode::Aggregating] {
        let mut gateway = Gateway::new(options(mode), Instant::ZERO);
        let (mut now, mut rest) = (Instant::ZERO, bytes);
        drain(&mut gateway, now);
        while let [what, length, after @ ..] = rest {
            let (piece, after) = after.split_at((*length as usize).min(after.len()));
            rest = after;
            now += Duration::from_ms(u64::from(*what) * 7);
            if let Some(input) = input(*what, piece) {
                gateway.handle(now, input);
            }
            drain(&mut gateway, now);
            if gateway.next_deadline().is_some_and(|at| at <= now) {
                gateway.handle(now, Input::Tick);
                drain(&mut gateway, now);
                assert!(
                    gateway.next_deadline().is_none_or(|at| at > now),
                    "a deadline that stays in the past"
                );
            }
        }
    }
}

fn drain(gateway: &mut Gateway<Arc<[u8]>>, now: Instant) {
    let mut encoded = Vec::new();
    for count in 0.. {
        let Some(output) = gateway.poll() else { break };
        assert!(count < 100_000, "the drain does not end at {now:?}");
        if let Output::Send { packet, .. } = output {
            encoded.clear();
            let length = encode(&packet, &mut encoded).unwrap_or(0);
            assert!(length <= LENGTH_MAX);
            assert!(length == 0 || decode(&encoded).is_ok(), "{packet:?} cannot be read");
        }
    }
    let snapshot = gateway.snapshot();
    assert!(snapshot.clients <= 3 && snapshot.to_clients <= snapshot.clients * 8, "{snapshot:?}");
}

fn input(what: u8, piece: &[u8]) -> Option<Input<Arc<[u8]>>> {
    let link = Link(u32::from(what >> 4));
    let text = || Arc::from(String::from_utf8_lossy(piece));
    let id = u16::from(piece.first().copied().unwrap_or(1));
    let qos = Qos::from_level(id as u8 % 3)?;
    let kinds = [Kind::Puback, Kind::Pubrec, Kind::Pubrel, Kind::Pubcomp, Kind::Unsuback];
    Some(match what % 16 {
        0..=8 => {
            let node = (what % 16 == 8).then(|| Arc::from(&piece[..piece.len().min(2)]));
            let packet = decode(piece).ok()?.packet.map(Arc::from, Arc::from);
            Input::Packet { from: Address { peer: u32::from(what >> 5), node }, packet }
        }
        9 => Input::Opened(link),
        10 => Input::Closed(link),
        11 => Input::Broker(link, BrokerPacket::Connack { code: (id as u8) & 4, session_present: false }),
        // The MQTT decoder refuses a PUBLISH without a topic before a gateway sees it.
        12 if piece.is_empty() => return None,
        12 => {
            let (dup, retain) = (id & 1 == 1, id & 2 == 2);
            let packet = BrokerPacket::Publish {
                dup,
                qos,
                retain,
                topic: text(),
                id: id.max(1),
                message: piece.into(),
            };
            Input::Broker(link, packet)
        }
        13 => Input::Broker(link, BrokerPacket::Acknowledgement { kind: kinds[usize::from(id) % 5], id }),
        14 => Input::Broker(link, BrokerPacket::Suback { id, code: (id as u8) | (what & 0x80) }),
        _ => Input::Broker(link, BrokerPacket::Pingresp),
    })
}

pub fn options(mode: Mode) -> GatewayOptions {
    GatewayOptions {
        id: 1,
        mode,
        client_id: "gateway".into(),
        keep_alive: Duration::from_s(60),
        retry: Duration::from_s(10),
        retries: 2,
        window: 2,
        buffer: 4,
        clients_max: 3,
        broker_window: 4,
        broker_queue: 4,
        filter_duplicates: true,
        advertise: Some(Duration::from_s(900)),
        predefined: [(1, Arc::from("known/one")), (2, Arc::from("known/two"))].into(),
    }
}
