/** The kinds of the options that a URL and a config file can have, too. `NsqOptions` says what they mean. */
import { OptionKind, OptionTree } from "@requeue/core/adapter-kit"
import * as Address from "./address.ts"

const day = 24 * 60 * 60 * 1000

export const fields = {
  nsqd: OptionTree.list(Address.ofNsqd),
  nsqdHttp: OptionTree.list(Address.ofHttp),
  lookupd: OptionTree.list(Address.ofHttp),
  lookupdInterval: OptionKind.whole(100, 3_600_000),
  channel: OptionKind.matching(
    "1 to 64 letters, digits, dots, _ and -, and #ephemeral behind them",
    /^(?=.{1,64}$)[.a-zA-Z0-9_-]+(#ephemeral)?$/
  ),
  authInClear: OptionKind.flag,
  compression: OptionKind.oneOf(["none", "deflate", "snappy"]),
  userAgent: OptionKind.nonEmpty,
  heartbeat: OptionKind.whole(1000, 60_000),
  connectTimeout: OptionKind.whole(100, 120_000),
  requestTimeout: OptionKind.whole(100, 120_000),
  publishTimeout: OptionKind.whole(100, 120_000),
  reconnectFirst: OptionKind.whole(1, 60_000),
  reconnectMax: OptionKind.whole(1, 120_000),
  messageTimeout: OptionKind.whole(1000, day),
  outputBufferTimeout: OptionKind.whole(1, 60_000),
  maxUnconfirmed: OptionKind.whole(1, 65_535),
  retry: OptionKind.oneOf(["native", "exact"]),
  envelope: OptionKind.oneOf(["always", "never"]),
  publishOver: OptionKind.oneOf(["first", "all"]),
  publishTo: OptionKind.oneOf([1, 2]),
  create: OptionKind.flag,
  http: OptionKind.flag,
  maxReqTimeout: OptionKind.whole(1, day),
  maxMsgSize: OptionKind.whole(512, 1024 * 1024 * 1024),
  maxBodySize: OptionKind.whole(1024, 1024 * 1024 * 1024)
}
