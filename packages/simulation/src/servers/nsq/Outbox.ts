/**
 * The frames that nsqd sends to a client. Messages are held back, to be written together, until no more may be sent, a
 * response is sent, 16 KiB are full, or `output_buffer_timeout` ticks: `messagePump` in
 * https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go
 */
import type { Host } from "../Host.ts"
import { connection as limits } from "./Flags.ts"

/** A frame. */
export type Frame =
  | { readonly _tag: "Response" | "Error"; readonly text: string }
  | { readonly _tag: "Message"; readonly payload: Buffer }

/** The way to the client. */
export interface Output {
  readonly write: (frame: Frame) => void
  /** Closes the connection after what was written. */
  readonly close: () => void
}

export interface Outbox {
  /** Begins to tick. `interval` is in milliseconds. */
  readonly start: (interval: number) => void
  /** Holds a message back. */
  readonly push: (payload: Buffer) => void
  readonly flush: () => void
  readonly respond: (text: string, tag: "Response" | "Error") => void
  /** Loses what is held back. */
  readonly drop: () => void
}

/** An empty outbox. */
export const make = (host: Host, { write }: Pick<Output, "write">): Outbox => {
  let held: Array<Buffer> = []
  let size = 0
  let [started, interval] = [host.now(), 250]
  let cancel = (): void => {}

  const drop = (): void => {
    cancel()
    held = []
    size = 0
  }
  const flush = (): void => {
    const all = held
    drop()
    for (const payload of all) write({ _tag: "Message", payload })
  }
  const untilTick = (): number => {
    const now = host.now()
    return started + (Math.floor((now - started) / interval) + 1) * interval - now
  }

  return {
    start: (millis) => {
      started = host.now()
      interval = millis
    },
    push: (payload) => {
      if (held.length === 0) cancel = host.after(untilTick(), flush)
      held.push(payload)
      size += payload.length
      if (size >= limits.outputBufferSize) flush()
    },
    flush,
    respond: (text, tag) => {
      flush()
      write({ _tag: tag, text })
    },
    drop
  }
}
