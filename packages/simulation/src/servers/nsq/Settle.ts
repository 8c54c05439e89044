/**
 * The commands `FIN`, `REQ` and `TOUCH`.
 *
 * | rule | source: https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go |
 * | --- | --- |
 * | REQ with too long a delay is cut to `--max-req-timeout`; before 1.1.0 it is refused | `REQ`, https://github.com/nsqio/nsq/pull/868 |
 * | a delay with a fraction, a sign or an exponent is refused; one that overflows is none | `ByteToBase10`, `REQ` |
 */
import type { Channel } from "./Channel.ts"
import type { Daemon } from "./Daemon.ts"
import { Fatal, millisOf } from "./Fatal.ts"
import type * as Flights from "./Flights.ts"
import { isAtLeast } from "./Versions.ts"

const delayOf = ({ flags: { maxReqTimeout }, version }: Daemon, text: string): number => {
  const millis = millisOf("REQ", text)
  const isInRange = millis >= 0 && millis <= maxReqTimeout
  if (!isInRange && !isAtLeast(version, "1.1.0")) {
    throw new Fatal(`E_INVALID REQ timeout ${millis * 1e6} out of range 0-${maxReqTimeout * 1e6}`)
  }
  return Math.min(Math.max(0, millis), maxReqTimeout)
}

/** Carries out a command of a client. Returns the refusal, if any. */
export const run = (
  daemon: Daemon,
  channel: Channel,
  client: Flights.Client,
  name: string,
  [id, delay]: ReadonlyArray<string>
): string | undefined => {
  if (id === undefined || (name === "REQ" && delay === undefined)) {
    throw new Fatal(`E_INVALID ${name} insufficient number of params`)
  }
  if (id.length !== 16) throw new Fatal("E_INVALID invalid message ID")
  const failure =
    name === "FIN"
      ? channel.finish(client, id)
      : name === "TOUCH"
        ? channel.touch(client, id)
        : channel.requeue(client, id, delayOf(daemon, delay!))
  return failure === undefined ? undefined : `E_${name}_FAILED ${name} ${id} failed ${failure}`
}
