// Frames over one faded way in ns-3: which part of them is lost, by the distance.
//
//   sender ─── LogDistance, Nakagami ───► receiver
//
// Each frame goes to all (a broadcast), so it is sent once and nobody acknowledges it. Levels are mqttlab's: 20 dBm, noise
// of -95 dBm whatever the width of the channel, a preamble that needs 4 dB and -91 dBm. One simulation a call; its
// figures are one JSON object on standard output.
//
// It does not model a coherence time: ns-3 draws a gain for every frame that a receiver hears.

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>

using namespace ns3;

namespace
{

constexpr double NOISE_DBM = -95;
/// ns-3's noise of a receiver is that of 290 K. Whether -95 dBm come out, a run tells (`noise_dbm`).
constexpr double BOLTZMANN_J_K = 1.3803e-23;
constexpr double TEMPERATURE_K = 290;
constexpr double LIGHT_M_S = 299792458;
constexpr double FREQUENCY_HZ = 2.4e9;

struct Options
{
    std::string mode = "DsssRate11Mbps";
    std::string errors = "ns3::NistErrorRateModel";
    /// The shape of Nakagami's law; none where it is 0.
    double m = 0;
    double metres = 100;
    double exponent = 3;
    uint32_t ipBytes = 200;
    uint32_t frames = 20000;
    uint64_t run = 1;

    bool IsDsss() const
    {
        return mode.rfind("Dsss", 0) == 0;
    }

    /// Of 20 MHz: ns-3 3.37 reckons with them for broadcast frames of 802.11b, too, whose channel has 22.
    double NoiseFigureDb() const
    {
        return NOISE_DBM - 10 * std::log10(BOLTZMANN_J_K * TEMPERATURE_K * 20e6 * 1e3);
    }
};

using MonitorSniffer =
    Callback<void, Ptr<const Packet>, uint16_t, WifiTxVector, MpduInfo, SignalNoiseDbm, uint16_t>;

YansWifiChannelHelper Channel(const Options& options)
{
    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel",
                               "Exponent",
                               DoubleValue(options.exponent),
                               "ReferenceLoss",
                               DoubleValue(20 * std::log10(4 * M_PI * FREQUENCY_HZ / LIGHT_M_S)));
    if (options.m > 0)
    {
        const DoubleValue shape(options.m);
        channel.AddPropagationLoss("ns3::NakagamiPropagationLossModel", "m0", shape, "m1", shape, "m2", shape);
    }
    return channel;
}

NetDeviceContainer Install(const NodeContainer& nodes, const Options& options)
{
    YansWifiPhyHelper phy;
    phy.SetChannel(Channel(options).Create());
    phy.SetErrorRateModel(options.errors);
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel",
                                  "Threshold",
                                  DoubleValue(4),
                                  "MinimumRssi",
                                  DoubleValue(-91));
    phy.Set("TxPowerStart", DoubleValue(20));
    phy.Set("TxPowerEnd", DoubleValue(20));
    phy.Set("RxNoiseFigure", DoubleValue(options.NoiseFigureDb()));
    Config::SetDefault("ns3::WifiRemoteStationManager::NonUnicastMode", WifiModeValue(WifiMode(options.mode)));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    WifiHelper wifi;
    wifi.SetStandard(options.IsDsss() ? WIFI_STANDARD_80211b : WIFI_STANDARD_80211g);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue(options.mode),
                                 "ControlMode",
                                 StringValue(options.mode));
    auto positions = CreateObject<ListPositionAllocator>();
    positions->Add(Vector(0, 0, 0));
    positions->Add(Vector(options.metres, 0, 0));
    MobilityHelper mobility;
    mobility.SetPositionAllocator(positions);
    mobility.Install(nodes);
    return wifi.Install(phy, mac, nodes);
}

Options Parse(int argc, char* argv[])
{
    Options options;
    CommandLine command(__FILE__);
    command.AddValue("mode", "DsssRate11Mbps, ErpOfdmRate54Mbps, ...", options.mode);
    command.AddValue("errors", "ns-3's error rate model", options.errors);
    command.AddValue("m", "shape of Nakagami's law; 0 for no fading", options.m);
    command.AddValue("metres", "from sender to receiver", options.metres);
    command.AddValue("exponent", "of the path loss", options.exponent);
    command.AddValue("bytes", "of an IP packet", options.ipBytes);
    command.AddValue("frames", "how many are sent", options.frames);
    command.AddValue("run", "number of the independent replication", options.run);
    command.Parse(argc, argv);
    return options;
}

} // namespace

int main(int argc, char* argv[])
{
    const auto options = Parse(argc, argv);
    RngSeedManager::SetRun(options.run);
    NodeContainer nodes(2);
    const auto devices = Install(nodes, options);
    uint32_t received = 0;
    double noise_dbm = 0;
    const auto receiver = DynamicCast<WifiNetDevice>(devices.Get(1))->GetPhy();
    receiver->TraceConnectWithoutContext(
        "MonitorSnifferRx",
        MonitorSniffer([&noise_dbm](auto, auto, auto, auto, auto heard, auto) {
            noise_dbm = heard.noise;
        }));
    devices.Get(1)->SetReceiveCallback(
        [&received, &options](Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&) {
            received += packet->GetSize() == options.ipBytes;
            return true;
        });
    for (uint32_t number = 0; number < options.frames; ++number)
    {
        Simulator::Schedule(Seconds(1) + MilliSeconds(10 * number), [&devices, &options] {
            const auto sender = devices.Get(0);
            sender->Send(Create<Packet>(options.ipBytes), sender->GetBroadcast(), 0x0800);
        });
    }
    Simulator::Stop(Seconds(2) + MilliSeconds(10 * options.frames));
    Simulator::Run();
    std::cout << "{\"frames\": " << options.frames << ", \"received\": " << received
              << ", \"noise_dbm\": " << noise_dbm << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
