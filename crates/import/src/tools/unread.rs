//! Output of tools that tells of no single message: what it is, what it lacks, and the nearest way that works.
//!
//! Known by what these write: emqtt-bench 0.4 (lines of a second, and its metrics for Prometheus), MQTTLoader 0.8 (summary,
//! throughputs, latencies), JMeter 5 (JTL as CSV and XML), k6 0.50 (summary, JSON and CSV points), mqtt-benchmark 0.3, NanoMQ 0.20.

/// The sentence of a file that begins so; `None` where it is of no tool that is known.
pub fn kind_of(head: &str) -> Option<&'static str> {
    let first = head.lines().find(|line| !line.trim().is_empty())?.trim();
    let any = |text: &str| head.contains(text);
    let has_rate =
        |line: &str| line.contains("rate=") && (line.contains("total=") || line.contains("(msg/sec)"));
    if head.lines().any(has_rate) {
        return Some(EMQTT_BENCH);
    }
    if any("# TYPE ") && (any("emqtt_bench") || any("pub_overrun") || any("e2e_latency")) {
        return Some(EMQTT_BENCH_METRICS);
    }
    if any("timeStamp") && any("elapsed") && first.contains("label") {
        return Some(JMETER);
    }
    if any("<testResults") || (first.starts_with('<') && any("<sample ") && any("lb=\"")) {
        return Some(JMETER);
    }
    if first.starts_with("metric_name,timestamp,metric_value")
        || (first.starts_with('{')
            && any("\"metric\"")
            && any("\"type\"")
            && (any("\"Point\"") || any("\"Metric\"")))
        || (first.starts_with('{') && any("\"metrics\"") && (any("\"root_group\"") || any("\"state\"")))
    {
        return Some(K6);
    }
    if any("Maximum throughput[msg/s]") || any("-----Publisher-----") || any("Measurement start time:") {
        return Some(MQTTLOADER);
    }
    if first.starts_with("SLOT, ") {
        return Some(MQTTLOADER);
    }
    if any("Msg time min (ms)") || any("\"msg_time_min\"") {
        return Some(MQTT_BENCHMARK);
    }
    if any(" received PUBLISH (d") || any(" sending PUBLISH (d") {
        return Some(MOSQUITTO_CLIENT);
    }
    if any("nanomq") || any("NanoMQ") {
        return Some(NANOMQ);
    }
    None
}

const EMQTT_BENCH: &str = "is output of emqtt-bench, which prints sums and rates once a second, not messages; capture its \
     connections instead (tcpdump -i any -w bench.pcap port 1883) and import them with: mqttlab import capture bench.pcap";
const EMQTT_BENCH_METRICS: &str = "has metrics of emqtt-bench for Prometheus, which are counters and histograms, not messages; \
     capture its connections instead (tcpdump -i any -w bench.pcap port 1883) and import them with: mqttlab import \
     capture bench.pcap";
const JMETER: &str = "is a result file of JMeter (JTL), which has samples, not messages: no client, topic or QoS, and one sample of a \
     subscriber stands for several messages; capture JMeter's connections instead (tcpdump -i any -w jmeter.pcap port 1883) and \
     import them with: mqttlab import capture jmeter.pcap";
const K6: &str = "is output of k6, which has values of metrics, not messages: nothing says which message a value belongs to; capture k6's \
     connections instead (tcpdump -i any -w k6.pcap port 1883) and import them with: mqttlab import capture k6.pcap";
const MQTTLOADER: &str = "is a summary of MQTTLoader, which has sums, rates or latencies, not messages; set output in its \
     configuration, and import the records that it then writes with: mqttlab import log mqttloader_….csv";
const MQTT_BENCHMARK: &str = "is a summary of mqtt-benchmark, which has sums and means for each client, not messages; capture \
     its connections instead (tcpdump -i any -w bench.pcap port 1883) and import them with: mqttlab import capture bench.pcap";
const MOSQUITTO_CLIENT: &str = "is output of mosquitto_pub or mosquitto_sub with -d, which has one client and no times; import the broker's log \
     (log_type all) with mqttlab import log, or capture its connections: tcpdump -i any -w broker.pcap port 1883";
const NANOMQ: &str = "is a log of NanoMQ, whose lines do not say which client sent or received which message; capture the \
     broker's connections instead (tcpdump -i any -w nanomq.pcap port 1883) and import them with: mqttlab import capture \
     nanomq.pcap";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_is_named_with_the_nearest_way_that_works() {
        for (head, name) in [
            ("connected: 10\n1s pub total=1000 rate=1000.00/sec\n", "emqtt-bench"),
            ("pub(27): total=2102, rate=101(msg/sec)\n", "emqtt-bench"),
            ("# TYPE pub_overrun counter\npub_overrun 0\n", "emqtt-bench for Prometheus"),
            ("timeStamp,elapsed,label,responseCode\n1,2,Pub,200\n", "JMeter"),
            ("label,timeStamp,elapsed\n", "JMeter"),
            ("<?xml version=\"1.0\"?>\n<testResults version=\"1.2\">\n", "JMeter"),
            ("metric_name,timestamp,metric_value,check\n", "k6"),
            ("{\"type\":\"Metric\",\"data\":{},\"metric\":\"mqtt_calls\"}\n", "k6"),
            ("{\"root_group\":{},\"metrics\":{}}", "k6"),
            ("-----Publisher-----\nMaximum throughput[msg/s]: 18622\n", "MQTTLoader"),
            ("SLOT, a-pub000000, a-sub000000\n0, 1, 1\n", "MQTTLoader"),
            ("======= CLIENT 27 =======\nMsg time min (ms): 9.466\n", "mqtt-benchmark"),
            ("Client a received PUBLISH (d0, q0, r0, m0, 't', ... (5 bytes))\n", "mosquitto_sub"),
            ("2024-01-01 00:00:00 [1] INFO  /build/nanomq/nng/src/x.c:1\n", "NanoMQ"),
        ] {
            let said = kind_of(head).unwrap_or("nothing");
            assert!(said.contains(name), "{head}: {said}");
            assert!(said.contains("mqttlab import"), "{said}");
        }
    }

    #[test]
    fn what_is_of_no_tool_is_named_by_none() {
        for head in
            ["", "2018-05-29,23:20:20:163,sent,a/b,1,10240,000000\n", "message,sent,received\n1,2,3\n", "{}"]
        {
            assert_eq!(kind_of(head), None, "{head}");
        }
    }
}
