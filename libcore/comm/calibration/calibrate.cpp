// SPDX-License-Identifier: Apache-2.0
#include "comm/calibration/calibrate.h"

#include <fmt/format.h>
#include <hcomm/hcomm.h>

#include <bit>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "comm/calibration/cache.h"
#include "comm/calibration/measure.h"
#include "comm/control/host.h"
#include "comm/text.h"
#include "datatype/kernels.h"

namespace hcomm::comm {

namespace {

// A slot that no operation uses: what a measurement that gave up leaves there is read by nobody.
constexpr uint32_t kSlot = transport::kMaxSlots - 1;

struct Numbers {
  Work work;
  std::map<std::string, schedule::Link> links;  // by transport
  bool complete = true;                         // none is nominal
};

std::string text_of(const Numbers& numbers) {
  Fields fields;
  const auto add = [&](double number) { fields.add_number(std::bit_cast<uint64_t>(number)); };
  add(numbers.work.copy_us_per_byte);
  add(numbers.work.reduce_us_per_byte);
  for (const auto& [transport, link] : numbers.links) {
    fields.add(transport);
    add(link.latency_us);
    add(link.us_per_byte);
    add(link.overhead_us);
  }
  return fields.text();
}

Numbers numbers_of(std::string_view text) {
  const std::vector<std::string> fields = Fields::split(text);
  const auto number = [&](size_t i) { return std::bit_cast<double>(Fields::number(fields[i])); };
  Numbers numbers;
  if (fields.size() < 2) return numbers;
  numbers.work = {number(0), number(1)};
  for (size_t i = 2; i + 3 < fields.size(); i += 4)
    numbers.links[fields[i]] = {number(i + 1), number(i + 2), number(i + 3)};
  return numbers;
}

schedule::Link nominal_of(const transport::Reach& reach) {
  return {reach.latency_us, reach.bytes_per_us > 0 ? 1 / reach.bytes_per_us : 1e-3, 0};
}

// As the kernel calls it; "" where it does not.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  for (int i = 0; i < 16 && std::getline(file, line); i++)
    if (line.starts_with("model name")) return line;
  return {};
}

using Partners = std::map<std::string, uint32_t>;  // of rank 0, by transport

// By which transport this rank is joined to every other, "" to itself.
std::string row_of(const Links& links, uint32_t rank, uint32_t ranks) {
  Fields row;
  for (uint32_t peer = 0; peer < ranks; peer++)
    row.add(peer == rank ? "" : links.transport_of(peer));
  return row.text();
}

Partners partners_of(std::string_view row0) {
  const std::vector<std::string> transports = Fields::split(row0);
  Partners partners;
  for (uint32_t peer = 1; peer < transports.size(); peer++)
    partners.insert({transports[peer], peer});
  return partners;
}

// What rank 0 knows of earlier jobs with such partners.
class Kept {
 public:
  Kept(const schedule::Machine& machine, const CalibrationPlace& place, Partners partners);

  std::optional<Numbers> find() const;  // all of them, or nothing
  void keep(const Numbers& numbers);
  const Effort& effort() const { return cache_.writable() ? kThorough : kQuick; }

 private:
  uint64_t key_of(std::string_view what) const { return hash_bytes(what, here_); }
  uint64_t key_of(const Partners::value_type& partner) const;

  const schedule::Machine& machine_;
  const CalibrationPlace& place_;
  Partners partners_;
  Cache cache_;
  uint64_t here_;  // the library, the machine, and what else the numbers depend on
};

Kept::Kept(const schedule::Machine& machine, const CalibrationPlace& place, Partners partners)
    : machine_(machine),
      place_(place),
      partners_(std::move(partners)),
      cache_(place.config->calibration_cached ? place.config->cache_folder : "",
             wall_ns() / 1'000'000'000) {
  const Config& config = *place.config;
  here_ = hash_bytes(fmt::format("{} {} {} {} {} {} {} {} {} {} {}", HCOMM_VERSION_CODE, boot_id(),
                                 processor(), kernels_in_force(), machine.cores_of_node,
                                 place.crowded, config.ring_bytes, static_cast<int>(config.pull),
                                 static_cast<int>(config.huge_pages), config.socket_buffer_bytes,
                                 config.spin_us));
}

// Between two hosts the network counts, too.
uint64_t Kept::key_of(const Partners::value_type& partner) const {
  const auto& [transport, peer] = partner;
  const uint32_t here = machine_.node[0], there = machine_.node[peer];
  if (here == there) return key_of(transport);
  return key_of(fmt::format("{} {} {}", transport, place_.hosts[here], place_.hosts[there]));
}

std::optional<Numbers> Kept::find() const {
  Numbers numbers;
  const std::optional<Cache::Values> work = cache_.find(key_of("kernels"));
  if (!work) return std::nullopt;
  numbers.work = {work->first, work->second};
  bool sane = plausible(numbers.work);
  for (const auto& partner : partners_) {
    const std::optional<Cache::Values> values = cache_.find(key_of(partner));
    if (!values) return std::nullopt;
    schedule::Link& link = numbers.links[partner.first];
    link = {values->first, values->second, values->third};
    sane = sane && plausible(link);
  }
  return sane ? std::optional(numbers) : std::nullopt;
}

void Kept::keep(const Numbers& numbers) {
  cache_.put(key_of("kernels"), {numbers.work.copy_us_per_byte, numbers.work.reduce_us_per_byte});
  for (const auto& partner : partners_) {
    const schedule::Link& link = numbers.links.at(partner.first);
    cache_.put(key_of(partner), {link.latency_us, link.us_per_byte, link.overhead_us});
  }
  cache_.save();
}

// Rank 0 in turn with each of its partners.
Numbers measure(Links& links, const CalibrationPlace& place, const Partners& partners,
                const Effort& effort) {
  const int64_t start_ns = now_ns();
  const uint32_t rank = place.circle.index;
  const auto end = [&](uint32_t peer) {
    return PairEnd{*links.channel(peer, kSlot), place.crowded, start_ns};
  };
  Numbers numbers;
  for (const auto& [transport, peer] : partners) {
    if (rank == peer) answer_pair(end(0));
    if (rank != 0) continue;
    const std::optional<schedule::Link> link = measure_pair(end(peer), effort);
    numbers.links[transport] = link ? *link : nominal_of(links.reach(peer));
    numbers.complete = numbers.complete && link;
  }
  if (rank == 0) numbers.work = measure_work(effort);
  return numbers;
}

void fill(schedule::Machine& machine, const Numbers& numbers,
          const std::vector<std::string>& rows) {
  constexpr schedule::Link kUnknown{50, 1e-3, 0};  // of a transport that rank 0 has not
  machine.copy_us_per_byte = numbers.work.copy_us_per_byte;
  machine.reduce_us_per_byte = numbers.work.reduce_us_per_byte;
  machine.links.assign(size_t{machine.ranks} * machine.ranks, {});
  for (uint32_t from = 0; from < machine.ranks; from++) {
    const std::vector<std::string> row = Fields::split(rows[from]);
    for (uint32_t to = 0; to < machine.ranks && to < row.size(); to++) {
      const auto known = numbers.links.find(row[to]);
      if (from != to)
        machine.links[size_t{from} * machine.ranks + to] =
            known != numbers.links.end() ? known->second : kUnknown;
    }
  }
}

// Of all pairs; "" where there are several.
std::string only_transport(const std::vector<std::string>& rows) {
  std::set<std::string> transports;
  for (const std::string& row : rows)
    for (std::string& each : Fields::split(row)) transports.insert(std::move(each));
  transports.erase("");
  return transports.size() == 1 ? *transports.begin() : "";
}

}  // namespace

std::string calibrate(schedule::Machine& machine, Links& links, const CalibrationPlace& place) {
  const auto exchange = [&](std::string_view mine) {
    return place.control->exchange(place.circle, "measurements", mine, place.deadline);
  };
  const uint32_t rank = place.circle.index;
  const std::string row = row_of(links, rank, machine.ranks);
  std::optional<Kept> kept;
  std::string told;  // by rank 0
  if (rank == 0) {
    kept.emplace(machine, place, partners_of(row));
    if (const auto known = kept->find()) told = text_of(*known);
  }
  Fields mine;
  mine.add(row);
  mine.add(told);
  std::vector<std::string> rows = exchange(mine.text());
  for (std::string& each : rows) {
    std::vector<std::string> fields = Fields::split(each);
    fields.resize(2);
    if (&each == &rows[0]) told = fields[1];
    each = fields[0];
  }
  if (told.empty()) {
    const Effort& effort = kept ? kept->effort() : kQuick;
    const Numbers measured = measure(links, place, partners_of(rows[0]), effort);
    told = exchange(text_of(measured))[0];
    if (kept && measured.complete) kept->keep(measured);
  }
  fill(machine, numbers_of(told), rows);
  return only_transport(rows);
}

}  // namespace hcomm::comm
