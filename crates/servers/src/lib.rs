//! mqttlab's own servers as programs, which a live run starts beside its clients: the MQTT-SN gateway and the ZeroMQ proxy.

pub mod gateway;
pub mod proxy;
