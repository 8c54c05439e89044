/**
 * Publications of messages that are sent for the first time, straight into their queue and without wishes, which nearly all are:
 * what `toPublication` makes of them, and their shape besides.
 */
import { Metadata, type Outgoing } from "@requeue/core/port"
import type { Publication } from "../client.ts"
import * as Wire from "../wire.ts"
import { contentsOf, first } from "./toPublication.ts"

type Contents = ReturnType<typeof contentsOf>

/** The part that publications with the same headers have in common. */
interface Known extends Contents {
  readonly hasOthers: boolean
  /** The same object for publications that have the same properties, and headers of the same names. */
  readonly shape: object | undefined
}

/** Shapes that are remembered. Programs have few, unless they make up names of headers as they go. */
const limit = 100

const none: Publication["kept"] = []

/** Makes them; remembers shapes. */
export const make = (): ((message: Outgoing.Outgoing, copy: string) => Publication) => {
  const shapes = new Map<string, object>()
  /** By headers: core gives all messages the same ones whose sender has given none. */
  let last: Outgoing.Outgoing["headers"] | undefined
  let known: Known

  const shapeOf = ({ contents, others }: Contents): object | undefined => {
    const name = JSON.stringify([contents, Object.keys(others)])
    const found = shapes.get(name)
    if (found !== undefined || shapes.size >= limit) return found
    const made = {}
    shapes.set(name, made)
    return made
  }

  const knownOf = (headers: Outgoing.Outgoing["headers"]): Known => {
    if (headers === last) return known
    const contents = contentsOf(headers)
    known = { ...contents, hasOthers: Object.keys(contents.others).length > 0, shape: shapeOf(contents) }
    // Only what cannot change is known by its identity.
    last = Object.isFrozen(headers) ? headers : undefined
    return known
  }

  return ({ body, headers, metadata, queue }, copy) => {
    const { contents, hasOthers, others, shape } = knownOf(headers)
    const encoded = Metadata.encode(metadata)
    const { deliveryMode, messageId, timestamp } = first(metadata)
    return {
      queue,
      exchange: "",
      routingKey: queue,
      content: body,
      // Without spreading one object into another, which takes longer than all else here.
      options: {
        mandatory: true,
        messageId,
        timestamp,
        deliveryMode,
        contentType: contents.contentType,
        contentEncoding: contents.contentEncoding
      },
      unrouted: undefined,
      kept: none,
      typed: undefined,
      headers: hasOthers
        ? { ...others, [Metadata.header]: encoded, [Wire.copyHeader]: copy }
        : { [Metadata.header]: encoded, [Wire.copyHeader]: copy },
      shape
    }
  }
}

/** Whether this is such a message. */
export const isFirst = ({ delay, metadata, native }: Outgoing.Outgoing): boolean =>
  delay === 0 && native === undefined && metadata.attempts === 0 && metadata.deadLetter === undefined
