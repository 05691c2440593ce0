// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/mail.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/process.h"

namespace hcomm::transport {

namespace {

constexpr uint32_t kMagic = 0x48434c31;  // "HCL1"

// A letter on the wire; both ends are the same build on the same machine.
struct Envelope {
  uint32_t magic = kMagic;
  uint32_t reserved = 0;
  uint64_t token[2] = {0, 0};
  Letter letter;
};

// What came along with a message.
struct Attached {
  UniqueFd fd;
  std::optional<ucred> writer;
};

Attached read_attached(msghdr& message) {
  Attached attached;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred writer{};
      std::memcpy(&writer, CMSG_DATA(part), sizeof writer);
      attached.writer = writer;
    }
    if (part->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
      attached.fd.reset(fd);
    }
  }
  return attached;
}

std::string random_name() {
  uint64_t bits[2] = {};
  fill_random(std::as_writable_bytes(std::span(bits)));
  return fmt::format("hcomm-{:016x}{:016x}", bits[0], bits[1]);
}

}  // namespace

SocketName::SocketName(std::string_view name) {
  address_.sun_family = AF_UNIX;
  const size_t bytes = std::min(name.size(), sizeof address_.sun_path - 1);
  std::memcpy(address_.sun_path + 1, name.data(), bytes);
  bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
}

std::string_view SocketName::text() const {
  const size_t head = offsetof(sockaddr_un, sun_path) + 1;
  return bytes_ <= head ? std::string_view{}
                        : std::string_view(address_.sun_path + 1, bytes_ - head);
}

UniqueFd bind_socket(const SocketName& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) fail_system(errno, "make a socket for shared memory");
  if (::bind(fd.get(), name.get(), name.bytes()) != 0)
    fail_system(errno, "bind abstract socket {}", name.text());
  return fd;
}

Mailbox::Mailbox(const uint64_t (&token)[2], Reactor& reactor, Handler handler)
    : token_{token[0], token[1]},
      reactor_(reactor),
      handler_(std::move(handler)),
      name_(random_name()),
      fd_(bind_socket(SocketName(name_))) {
  const int on = 1;
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    fail_system(errno, "ask for the credentials of writers");
  reactor_.watch(fd_.get(), [this] { read_all(); });
}

Mailbox::~Mailbox() {
  reactor_.unwatch(fd_.get());
  read_all();  // letters may own what they point to
}

int Mailbox::send(const SocketName& to, const Letter& letter, int fd) const {
  Envelope envelope;
  envelope.token[0] = token_[0];
  envelope.token[1] = token_[1];
  envelope.letter = letter;
  iovec part{&envelope, sizeof envelope};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(to.get());
  message.msg_namelen = to.bytes();
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  while (::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return errno == EWOULDBLOCK ? EAGAIN : errno;
  }
  return 0;
}

void Mailbox::read_all() {
  // Bounded, so that a flood cannot keep the service thread from its other work.
  for (int i = 0; i < 64 && read_one(); i++) {
  }
}

bool Mailbox::read_one() {
  Envelope envelope;
  Mail mail;
  iovec part{&envelope, sizeof envelope};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_name = &mail.sender.address_;
  message.msg_namelen = sizeof mail.sender.address_;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t bytes = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0) return errno == EINTR;
  Attached attached = read_attached(message);
  mail.sender.bytes_ = message.msg_namelen;
  const bool ours = bytes == sizeof envelope && (message.msg_flags & MSG_TRUNC) == 0 &&
                    envelope.magic == kMagic && envelope.token[0] == token_[0] &&
                    envelope.token[1] == token_[1];
  if (!ours || !attached.writer) return true;
  mail.letter = envelope.letter;
  mail.same_user = attached.writer->uid == ::geteuid();
  mail.same_process = mail.same_user && attached.writer->pid == ::getpid();
  if (mail.same_user) mail.fd = std::move(attached.fd);
  handler_(std::move(mail));
  return true;
}

}  // namespace hcomm::transport
