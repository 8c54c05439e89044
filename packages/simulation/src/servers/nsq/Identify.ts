/**
 * The command `IDENTIFY`.
 *
 * | rule | source in https://github.com/nsqio/nsq/tree/v1.3.0/nsqd |
 * | --- | --- |
 * | a client chooses its lease, from 1 s to `--max-msg-timeout`; without a choice it has that of nsqd | `SetMsgTimeout` in client_v2.go |
 * | heartbeats are 1 s to 60 s apart, messages are held back for 25 ms to 30 s | `SetHeartbeatInterval`, `SetOutputBuffer` in client_v2.go |
 */
import type { Daemon } from "./Daemon.ts"
import { Fatal } from "./Fatal.ts"
import { connection as limits } from "./Flags.ts"

/** The choices of a client. Times are in milliseconds. */
export interface Identified {
  readonly clientId: string
  readonly lease: number
  readonly bufferTimeout: number
}

/** Returns a requested number, or the default for 0 and none. */
const requested = (name: string, value: unknown, otherwise: number, least: number, most: number): number => {
  if (value === undefined || value === null || value === 0) return otherwise
  if (typeof value === "number" && value >= least && value <= most) return value
  throw new Fatal(`E_BAD_BODY IDENTIFY ${name} (${String(value)}) is invalid`)
}

/** Reads the command. */
export const read = ({ flags }: Daemon, body: Buffer): Identified => {
  const data = JSON.parse(body.toString()) as Readonly<Record<string, unknown>> // clients write an object
  const { maxOutputBufferTimeout, minOutputBufferTimeout } = limits
  requested("heartbeat interval", data["heartbeat_interval"], 30_000, 1000, flags.maxHeartbeatInterval)
  const buffer = data["output_buffer_timeout"]
  return {
    clientId: String(data["client_id"]),
    lease: requested("msg timeout", data["msg_timeout"], flags.msgTimeout, 1000, flags.maxMsgTimeout),
    bufferTimeout: requested("output buffer timeout", buffer, 250, minOutputBufferTimeout, maxOutputBufferTimeout)
  }
}

/** Returns the response, with what clients read of it. */
export const response = ({ flags, version }: Daemon, { lease }: Identified): string =>
  JSON.stringify({
    max_rdy_count: flags.maxRdyCount,
    version,
    max_msg_timeout: flags.maxMsgTimeout,
    msg_timeout: lease,
    tls_v1: false,
    deflate: false,
    snappy: false,
    sample_rate: 0,
    auth_required: false
  })
