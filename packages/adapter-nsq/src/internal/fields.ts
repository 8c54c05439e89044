/** The kinds of the options that a URL or a config file can hold. `NsqOptions` documents them. */
import { Delay, OptionKind } from "@requeue/core/port"
import { OptionTree } from "@requeue/kit"
import * as Address from "./address.ts"

const day = 24 * 60 * 60 * 1000

export const fields = {
  nsqd: OptionTree.list(Address.ofNsqd),
  nsqdHttp: OptionTree.list(Address.ofHttp),
  lookupd: OptionTree.list(Address.ofHttp),
  lookupdInterval: Delay.kind(100, 3_600_000),
  channel: OptionKind.matching(
    "1 to 64 letters, digits, dots, _ and -, and #ephemeral behind them",
    /^(?=.{1,64}$)[.a-zA-Z0-9_-]+(#ephemeral)?$/
  ),
  authInClear: OptionKind.flag,
  compression: OptionKind.oneOf(["none", "deflate", "snappy"]),
  userAgent: OptionKind.nonEmpty,
  heartbeat: Delay.kind(1000, 60_000),
  connectTimeout: Delay.kind(100, 120_000),
  requestTimeout: Delay.kind(100, 120_000),
  publishTimeout: Delay.kind(100, 120_000),
  reconnectFirst: Delay.kind(1, 60_000),
  reconnectMax: Delay.kind(1, 120_000),
  messageTimeout: Delay.kind(1000, day),
  outputBufferTimeout: Delay.kind(1, 60_000),
  maxUnconfirmed: OptionKind.whole(1, 65_535),
  retry: OptionKind.oneOf(["native", "exact"]),
  envelope: OptionKind.oneOf(["always", "never"]),
  publishOver: OptionKind.oneOf(["first", "all"]),
  publishTo: OptionKind.oneOf([1, 2]),
  create: OptionKind.flag,
  http: OptionKind.flag,
  maxReqTimeout: Delay.kind(1, day),
  maxMsgSize: OptionKind.whole(512, 1024 * 1024 * 1024),
  maxBodySize: OptionKind.whole(1024, 1024 * 1024 * 1024)
}
