/**
 * Publications of messages that are sent for the first time, straight into their queue and without native options, as nearly all
 * are. The result equals that of `toPublication`, with a shape in addition.
 */
import { Metadata, type Outgoing } from "@requeue/core/port"
import type { Publication } from "../client.ts"
import * as Wire from "../wire.ts"
import { contentsOf, first } from "./toPublication.ts"

type Contents = ReturnType<typeof contentsOf>

/** The part that publications with the same headers share. */
interface Known extends Contents {
  readonly hasOthers: boolean
  /** The same object for publications with the same properties and the same names of headers. */
  readonly shape: object | undefined
}

/** The number of shapes to remember. Programs have few, unless they generate names of headers. */
const limit = 100

const none: Publication["kept"] = []

/** Makes publications and remembers shapes. */
export const make = (): ((message: Outgoing.Outgoing, copy: string) => Publication) => {
  const shapes = new Map<string, object>()
  /** By headers object: core uses the same one for all messages without headers. */
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
    // Only frozen objects can be recognised by identity.
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
      // No object spread, which would take longer than everything else here.
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

/** Whether a message is of this kind. */
export const isFirst = ({ delay, metadata, native }: Outgoing.Outgoing): boolean =>
  delay === 0 && native === undefined && metadata.attempts === 0 && metadata.deadLetter === undefined
