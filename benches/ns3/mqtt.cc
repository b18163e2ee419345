// MQTT 3.1.1 over ns-3's TCP: the networks of J. Perez, "MQTT Performance Analysis with OMNeT++" (2005).
//
//   publishers ─► switch ─► broker ─► switch ─► subscribers     --network=small, --network=twenty
//   publishers and subscribers around the broker, one channel   --network=radio --pairs=N
//
// --loss drops that part of the frames on every link, each on its own. The profile of TCP is NetBSD's of 2005; an attribute
// of ns-3's on the command line changes it, such as --ns3::TcpSocket::SegmentSize=1024.
//
// One simulation a call; its figures are one JSON object on standard output. Only lengths of control packets travel
// through TCP, since ns-3 is fastest so; what the packets are goes beside them, in the order of the stream.
//
// It does not model: CONNECT and SUBSCRIBE (connections and subscriptions are there when publishing begins), the
// time a broker takes, limits of messages in flight. The switch is an IP router with point-to-point links, because
// ns-3's bridge needs CSMA, whose cables are half duplex: frames are 16 bytes shorter than on Ethernet, 1.3 µs of a
// hop's millisecond.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <utility>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 1883;
constexpr uint32_t MSS_BYTES = 536;
constexpr uint32_t BUFFER_BYTES = 32 * MSS_BYTES;
constexpr uint32_t ACKNOWLEDGEMENT_BYTES = 4;

struct Options
{
    std::string network = "small";
    /// Publishers, and as many subscribers, around a radio channel.
    uint32_t pairs = 1;
    /// The part of the frames that each link loses.
    double loss = 0;
    /// When publishing begins: where frames are lost, connections take a while.
    double connectedBySeconds = 1;
    uint32_t qos = 0;
    uint32_t payloadBytes = 50;
    double rateHz = 200;
    bool rtsCts = false;
    double warmUpSeconds = 2;
    double durationSeconds = 60;
    double coolDownSeconds = 1;
    uint64_t run = 1;
    /// Where captures of all devices go; none are made when empty.
    std::string pcap;

    Time ConnectedBy() const
    {
        return Seconds(connectedBySeconds);
    }

    Time Begin() const
    {
        return ConnectedBy() + Seconds(warmUpSeconds);
    }

    Time End() const
    {
        return Begin() + Seconds(durationSeconds);
    }
};

enum class Kind
{
    Publish,
    Puback,
    Pubrec,
    Pubrel,
    Pubcomp,
};

/// The application's message, wherever it or what belongs to it is.
struct Message
{
    Time created;
    char topic;
};

/// A control packet in a stream; `bytes` are those that have not arrived.
struct ControlPacket
{
    Kind kind;
    Message message;
    uint32_t bytes;
};

using Stream = std::deque<ControlPacket>;

/// One end of a connection: control packets in, control packets out.
class Endpoint
{
  public:
    using Take = std::function<void(Endpoint&, const ControlPacket&)>;

    Endpoint(Stream& out, Stream& in, Take take)
        : m_out(out),
          m_in(in),
          m_take(std::move(take))
    {
    }

    void Attach(Ptr<Socket> socket)
    {
        m_socket = socket;
        socket->SetRecvCallback(MakeCallback(&Endpoint::Receive, this));
        socket->SetSendCallback(MakeCallback(&Endpoint::HasRoom, this));
        Write();
    }

    void Send(Kind kind, const Message& message, uint32_t bytes)
    {
        m_out.push_back({kind, message, bytes});
        m_unwrittenBytes += bytes;
        Write();
    }

    void Acknowledge(Kind kind, const Message& message)
    {
        Send(kind, message, ACKNOWLEDGEMENT_BYTES);
    }

  private:
    void HasRoom(Ptr<Socket>, uint32_t)
    {
        Write();
    }

    void Write()
    {
        // The broker has no socket yet for a client whose last acknowledgement of the handshake was lost.
        const auto bytes = m_socket ? std::min(m_unwrittenBytes, m_socket->GetTxAvailable()) : 0;
        if (bytes > 0)
        {
            NS_ABORT_MSG_IF(m_socket->Send(Create<Packet>(bytes)) != static_cast<int>(bytes),
                            "the socket refused bytes that it had room for");
            m_unwrittenBytes -= bytes;
        }
    }

    void Receive(Ptr<Socket> socket)
    {
        while (auto segment = socket->Recv())
        {
            Arrived(segment->GetSize());
        }
    }

    void Arrived(uint32_t bytes)
    {
        while (bytes > 0)
        {
            const auto part = std::min(bytes, m_in.front().bytes);
            bytes -= part;
            m_in.front().bytes -= part;
            if (m_in.front().bytes == 0)
            {
                const auto packet = m_in.front();
                m_in.pop_front();
                m_take(*this, packet);
            }
        }
    }

    Stream& m_out;
    Stream& m_in;
    Take m_take;
    Ptr<Socket> m_socket;
    uint32_t m_unwrittenBytes = 0;
};

/// Both ends of a connection, and what is between them.
struct Connection
{
    Connection(std::string wanted, Endpoint::Take client, Endpoint::Take broker)
        : topics(std::move(wanted)),
          client(up, down, std::move(client)),
          broker(down, up, std::move(broker))
    {
    }

    std::string topics; ///< subscribed to
    Stream up;
    Stream down;
    Endpoint client;
    Endpoint broker;
};

/// Publishers, subscribers, the broker, and the delays between them.
class Experiment
{
  public:
    explicit Experiment(const Options& options)
        : m_options(options),
          m_publishBytes(PublishBytes(options)),
          m_interval(CreateObject<ExponentialRandomVariable>())
    {
        m_interval->SetAttribute("Mean", DoubleValue(1 / options.rateHz));
    }

    void Listen(Ptr<Node> node)
    {
        m_listener = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Experiment::Accept, this));
    }

    void AddPublisher(Ptr<Node> node, Ipv4Address broker, char topic)
    {
        auto& connection = Connect(node, broker, "", [](Endpoint& self, const ControlPacket& packet) {
            if (packet.kind == Kind::Pubrec)
            {
                self.Acknowledge(Kind::Pubrel, packet.message);
            }
        });
        Simulator::Schedule(m_options.ConnectedBy() + Seconds(m_interval->GetValue()),
                            &Experiment::Publish,
                            this,
                            &connection.client,
                            topic);
    }

    void AddSubscriber(Ptr<Node> node, Ipv4Address broker, const std::string& topics)
    {
        Connect(node, broker, topics, [this](Endpoint& self, const ControlPacket& packet) {
            TakeAsSubscriber(self, packet);
        });
    }

    uint64_t Messages() const
    {
        return m_messages;
    }

    double DelayMilliseconds() const
    {
        return m_messages == 0 ? 0 : m_delaySeconds * 1e3 / static_cast<double>(m_messages);
    }

    /// The delay that a hundredth of the messages exceeds.
    double DelayMillisecondsP99()
    {
        if (m_delays.empty())
        {
            return 0;
        }
        const auto place = m_delays.begin() + static_cast<long>(m_delays.size() * 99 / 100);
        std::nth_element(m_delays.begin(), place, m_delays.end());
        return *place * 1e3;
    }

    /// Segments with data that all sockets sent, repeated ones too.
    uint64_t Segments() const
    {
        return m_segments;
    }

  private:
    /// Fixed header (2, for a rest below 128 bytes, else 3), topic's length and the topic, identifier, payload.
    static uint32_t PublishBytes(const Options& options)
    {
        const uint32_t rest = 2 + 1 + (options.qos > 0 ? 2 : 0) + options.payloadBytes;
        NS_ABORT_MSG_IF(rest >= 16384, "the payload is longer than two bytes of remaining length can say");
        return (rest < 128 ? 2 : 3) + rest;
    }

    Connection& Connect(Ptr<Node> node, Ipv4Address broker, const std::string& topics, Endpoint::Take take)
    {
        m_connections.push_back(std::make_unique<Connection>(
            topics,
            std::move(take),
            [this](Endpoint& self, const ControlPacket& packet) { TakeAsBroker(self, packet); }));
        auto& connection = *m_connections.back();
        m_byAddress[node->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal()] = &connection;
        auto socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        connection.client.Attach(socket);
        Count(socket);
        // One after the other, as people switch their machines on.
        Simulator::Schedule(MilliSeconds(10 * m_connections.size()), [socket, broker] {
            socket->Connect(InetSocketAddress(broker, PORT));
        });
        return connection;
    }

    void Accept(Ptr<Socket> socket, const Address& from)
    {
        m_byAddress.at(InetSocketAddress::ConvertFrom(from).GetIpv4())->broker.Attach(socket);
        Count(socket);
    }

    void Count(Ptr<Socket> socket)
    {
        socket->TraceConnectWithoutContext("Tx", MakeCallback(&Experiment::Sent, this));
    }

    void Sent(Ptr<const Packet> packet, const TcpHeader&, Ptr<const TcpSocketBase>)
    {
        m_segments += packet->GetSize() > 0;
    }

    void Publish(Endpoint* publisher, char topic)
    {
        if (Simulator::Now() < m_options.End())
        {
            publisher->Send(Kind::Publish, {Simulator::Now(), topic}, m_publishBytes);
            Simulator::Schedule(Seconds(m_interval->GetValue()), &Experiment::Publish, this, publisher, topic);
        }
    }

    /// Like Mosquitto: a message goes on before it is acknowledged, one of QoS 2 when its publisher has released it.
    void TakeAsBroker(Endpoint& self, const ControlPacket& packet)
    {
        switch (packet.kind)
        {
        case Kind::Publish:
            if (m_options.qos == 2)
            {
                self.Acknowledge(Kind::Pubrec, packet.message);
                return;
            }
            Distribute(packet.message);
            if (m_options.qos == 1)
            {
                AcknowledgeNext(self, Kind::Puback, packet.message);
            }
            return;
        case Kind::Pubrec:
            self.Acknowledge(Kind::Pubrel, packet.message);
            return;
        case Kind::Pubrel:
            Distribute(packet.message);
            AcknowledgeNext(self, Kind::Pubcomp, packet.message);
            return;
        case Kind::Puback:
        case Kind::Pubcomp:
            return;
        }
    }

    /// After what other sockets have been given just now. ns-3 sends it a nanosecond later, and on a socket that an
    /// acknowledgement has woken in this very instant, before that of all others.
    static void AcknowledgeNext(Endpoint& endpoint, Kind kind, const Message& message)
    {
        Simulator::Schedule(NanoSeconds(2), [&endpoint, kind, message] { endpoint.Acknowledge(kind, message); });
    }

    void Distribute(const Message& message)
    {
        for (auto& connection : m_connections)
        {
            if (connection->topics.find(message.topic) != std::string::npos)
            {
                connection->broker.Send(Kind::Publish, message, m_publishBytes);
            }
        }
    }

    /// A message of QoS 2 is delivered when the broker has released it.
    void TakeAsSubscriber(Endpoint& self, const ControlPacket& packet)
    {
        if (packet.kind == Kind::Publish && m_options.qos > 0)
        {
            self.Acknowledge(m_options.qos == 1 ? Kind::Puback : Kind::Pubrec, packet.message);
        }
        if (packet.kind == Kind::Pubrel)
        {
            self.Acknowledge(Kind::Pubcomp, packet.message);
        }
        if (packet.kind == (m_options.qos == 2 ? Kind::Pubrel : Kind::Publish))
        {
            Measure(packet.message);
        }
    }

    void Measure(const Message& message)
    {
        if (message.created >= m_options.Begin() && message.created < m_options.End())
        {
            ++m_messages;
            m_delays.push_back((Simulator::Now() - message.created).GetSeconds());
            m_delaySeconds += m_delays.back();
        }
    }

    const Options m_options;
    const uint32_t m_publishBytes;
    Ptr<ExponentialRandomVariable> m_interval;
    Ptr<Socket> m_listener;
    std::vector<std::unique_ptr<Connection>> m_connections;
    std::map<Ipv4Address, Connection*> m_byAddress;
    uint64_t m_messages = 0;
    double m_delaySeconds = 0;
    std::vector<double> m_delays;
    uint64_t m_segments = 0;
};

/// NetBSD's TCP of 2005 as the study has it (python/mqttlab/studies/perez2005/experiment.py), but with SACK: without, ns-3 3.37
/// counts segments with data among the duplicate acknowledgements, against RFC 5681 section 2, and where both ends
/// send, it retransmits what was never lost. Nothing is lost here, so SACK changes nothing else.
void ConfigureTcp()
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(BUFFER_BYTES));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(BUFFER_BYTES));
    Config::SetDefault("ns3::TcpSocket::TcpNoDelay", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(30)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(false));
}

/// Only static routes are asked, and packets go to the device's own queue: both save ns-3 time.
void InstallInternet(const NodeContainer& nodes)
{
    InternetStackHelper internet;
    internet.SetRoutingHelper(Ipv4StaticRoutingHelper());
    internet.Install(nodes);
}

/// Every device loses this part of the frames that come to it, each on its own.
void Lose(const NetDeviceContainer& devices, double loss)
{
    for (auto device = devices.Begin(); loss > 0 && device != devices.End(); ++device)
    {
        auto errors = CreateObject<RateErrorModel>();
        errors->SetAttribute("ErrorUnit", EnumValue(RateErrorModel::ERROR_UNIT_PACKET));
        errors->SetAttribute("ErrorRate", DoubleValue(loss));
        (*device)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    }
}

/// The address of the broker, which is the last of the hosts.
Ipv4Address ConnectBySwitch(const NodeContainer& hosts, double loss, const std::string& pcap)
{
    auto center = CreateObject<Node>();
    NodeContainer all(hosts);
    all.Add(center);
    InstallInternet(all);
    PointToPointHelper cable;
    cable.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    cable.SetChannelAttribute("Delay", StringValue("1ms"));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    Ipv4Address last;
    for (auto host = hosts.Begin(); host != hosts.End(); ++host)
    {
        const auto devices = cable.Install(*host, center);
        Lose(devices, loss);
        const auto interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        TrafficControlHelper().Uninstall(devices);
        Ipv4StaticRoutingHelper().GetStaticRouting((*host)->GetObject<Ipv4>())->SetDefaultRoute(
            interfaces.GetAddress(1), 1);
        last = interfaces.GetAddress(0);
    }
    if (!pcap.empty())
    {
        cable.EnablePcapAll(pcap);
    }
    return last;
}

/// IEEE 802.11 DSSS at 2 Mbit/s: stations 20 m from the one in the middle, which is the broker.
Ipv4Address ConnectByRadio(const NodeContainer& hosts, bool rtsCts, const std::string& pcap)
{
    InstallInternet(hosts);
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(rtsCts ? 0 : 65535));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize("50p")));
    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel", "Exponent", DoubleValue(3));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("DsssRate2Mbps"),
                                 "ControlMode",
                                 StringValue("DsssRate1Mbps"));
    const auto devices = wifi.Install(phy, mac, hosts);
    auto positions = CreateObject<ListPositionAllocator>();
    const auto clients = hosts.GetN() - 1;
    for (uint32_t number = 0; number < clients; ++number)
    {
        const double angle = 2 * M_PI * number / std::max(clients, 4U);
        positions->Add(Vector(20 * std::cos(angle), 20 * std::sin(angle), 0));
    }
    positions->Add(Vector(0, 0, 0));
    MobilityHelper mobility;
    mobility.SetPositionAllocator(positions);
    mobility.Install(hosts);
    const auto interfaces = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    NeighborCacheHelper().PopulateNeighborCache();
    if (!pcap.empty())
    {
        phy.EnablePcapAll(pcap);
    }
    return interfaces.GetAddress(hosts.GetN() - 1);
}

struct Group
{
    uint32_t count;
    std::string topics;
};

struct Population
{
    std::vector<Group> publishers;
    std::vector<Group> subscribers;
};

Population PopulationOf(const Options& options)
{
    if (options.network == "radio")
    {
        // Each pair has a topic of its own.
        Population population;
        for (uint32_t pair = 0; pair < options.pairs; ++pair)
        {
            const std::string topic(1, static_cast<char>('!' + pair));
            population.publishers.push_back({1, topic});
            population.subscribers.push_back({1, topic});
        }
        return population;
    }
    if (options.network == "twenty")
    {
        return {{{4, "x"}, {3, "y"}, {3, "z"}}, {{4, "x"}, {3, "xy"}, {3, "xyz"}}};
    }
    return {{{1, "x"}}, {{1, "x"}}};
}

void Populate(Experiment& experiment, const Options& options)
{
    const auto population = PopulationOf(options);
    uint32_t clients = 0;
    for (const auto& groups : {population.publishers, population.subscribers})
    {
        for (const auto& group : groups)
        {
            clients += group.count;
        }
    }
    NodeContainer hosts(clients + 1);
    const auto broker = options.network == "radio" ? ConnectByRadio(hosts, options.rtsCts, options.pcap)
                                                   : ConnectBySwitch(hosts, options.loss, options.pcap);
    experiment.Listen(hosts.Get(clients));
    uint32_t next = 0;
    for (const auto& group : population.publishers)
    {
        for (uint32_t number = 0; number < group.count; ++number)
        {
            experiment.AddPublisher(hosts.Get(next++), broker, group.topics.front());
        }
    }
    for (const auto& group : population.subscribers)
    {
        for (uint32_t number = 0; number < group.count; ++number)
        {
            experiment.AddSubscriber(hosts.Get(next++), broker, group.topics);
        }
    }
}

double CpuSeconds()
{
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec / 1e6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Options Parse(int argc, char* argv[])
{
    Options options;
    CommandLine command(__FILE__);
    command.AddValue("network", "small, twenty or radio", options.network);
    command.AddValue("pairs", "publishers, and as many subscribers, on the radio", options.pairs);
    command.AddValue("loss", "part of the frames that each link loses; not on the radio", options.loss);
    command.AddValue("connectedBy", "seconds until publishing begins", options.connectedBySeconds);
    command.AddValue("qos", "0, 1 or 2", options.qos);
    command.AddValue("payload", "bytes of a message's payload", options.payloadBytes);
    command.AddValue("rate", "messages per second and publisher", options.rateHz);
    command.AddValue("rtsCts", "announce frames on the radio", options.rtsCts);
    command.AddValue("warmUp", "seconds of publishing before the measurement", options.warmUpSeconds);
    command.AddValue("duration", "seconds of measurement", options.durationSeconds);
    command.AddValue("coolDown", "seconds after it", options.coolDownSeconds);
    command.AddValue("run", "number of the independent replication", options.run);
    command.AddValue("pcap", "where captures of all devices go, a path without ending", options.pcap);
    command.Parse(argc, argv);
    NS_ABORT_MSG_IF(options.network != "small" && options.network != "twenty" && options.network != "radio",
                    "`network` is " << options.network << ", but must be small, twenty or radio");
    NS_ABORT_MSG_IF(options.qos > 2, "`qos` is " << options.qos << ", but must be 0, 1 or 2");
    NS_ABORT_MSG_IF(!(options.rateHz > 0), "`rate` must be above 0");
    NS_ABORT_MSG_IF(options.pairs < 1 || options.pairs > 94, "`pairs` must be 1 to 94, as many as topics of one letter");
    NS_ABORT_MSG_IF(!(options.loss >= 0 && options.loss < 1), "`loss` must be 0 or more, and below 1");
    NS_ABORT_MSG_IF(options.loss > 0 && options.network == "radio", "`loss` is of links; the radio has its own");
    return options;
}

} // namespace

int main(int argc, char* argv[])
{
    // First, so that an attribute of ns-3's can be given on the command line, too.
    ConfigureTcp();
    const auto options = Parse(argc, argv);
    RngSeedManager::SetRun(options.run);
    Experiment experiment(options);
    Populate(experiment, options);
    Simulator::Stop(options.End() + Seconds(options.coolDownSeconds));
    const auto before = CpuSeconds();
    Simulator::Run();
    std::cout << "{\"delay_ms\": " << experiment.DelayMilliseconds()
              << ", \"delay_ms_p99\": " << experiment.DelayMillisecondsP99()
              << ", \"messages\": " << experiment.Messages() << ", \"segments\": " << experiment.Segments()
              << ", \"simulated_s\": " << Simulator::Now().GetSeconds()
              << ", \"cpu_s\": " << CpuSeconds() - before << ", \"events\": " << Simulator::GetEventCount()
              << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
