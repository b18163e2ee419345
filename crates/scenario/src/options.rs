//! What is recorded.

use std::borrow::Cow;

use mqttlab_fields::{Flat, Node, Reader, Rules, Table, Value, fields, words};
use mqttlab_plan::{RecordingPlan, SummaryPlan};

/// Rows of messages that are added up at once, in bytes, and rows of the sample.
const SUMMARY: SummaryPlan = SummaryPlan { fold_bytes: 32 << 20, rows_most: 200_000 };

words! {
    /// How much of a run is recorded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Detail {
        /// Every message, every frame on every link with its fate, every control packet.
        Full = "full",
        /// Every message, but no frames and no control packets.
        Messages = "messages",
        /// Sums of all messages and a sample.
        Summary = "summary",
    }
}

fields! {
    /// What is recorded besides events and resources.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RecordingOptions with rules {
        /// `full`: every message, every frame on every link with its fate, every control packet. `messages`: every message,
        /// but no frames and no control packets; their metrics and the parts of latencies are then unknown. `summary`: sums
        /// of all messages and a sample of about 200,000, for runs of any length; what needs each message is then unknown,
        /// too.
        detail: Detail = Detail::Full,
        /// What the plan has of it.
        plan: RecordingPlan as Flat<RecordingPlan>,
    }
}

impl Rules for RecordingOptions {
    /// What scenarios said before there was `detail`: those of recordings and of experiments that go on.
    fn before<'n>(node: &'n Node, _reader: &mut Reader) -> Result<Cow<'n, Node>, String> {
        let Some(table) = node.as_table() else { return Ok(Cow::Borrowed(node)) };
        let Some(Node { value: Value::Truth(packets), .. }) = table.get("packets") else {
            return Ok(Cow::Borrowed(node));
        };
        if table.has("detail") {
            return Err("has both `detail` and `packets`, the older word for it; keep `detail`".into());
        }
        let mut table = table.clone();
        table.members.retain(|member| member.name != "packets");
        table.put("detail", Node::text(if *packets { "full" } else { "messages" }));
        Ok(Cow::Owned(Node { value: Value::Table(table), at: node.at }))
    }

    fn check(&mut self, _table: &Table) -> Result<(), String> {
        self.plan.packets = self.detail == Detail::Full;
        self.plan.summary = (self.detail == Detail::Summary).then_some(SUMMARY);
        Ok(())
    }
}
