//! What is on the agenda of a simulation. Frames are not: the wire knows when they arrive.

use mqttlab_run::RunStage;

use crate::ids::{ClientId, ServerId, Side, TcpConnectionId};

/// Something that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SimEvent {
    /// A client's deadline.
    Client(ClientId),
    /// A TCP timer.
    Timer { connection: TcpConnectionId, side: Side },
    /// A program reads from its connection.
    Read { connection: TcpConnectionId, side: Side },
    /// A client's program reads the datagrams that have come.
    ReadDatagrams(ClientId),
    /// A server has done with a request, or has something to send.
    Server(ServerId),
    /// An event of the plan, by its place in the plan's list.
    Planned(u32),
    /// The present stage is over.
    Stage(RunStage),
}
