/** A channel on which the server confirms what is published, and returns what it has nowhere to put. */
import { Bag, BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Client from "../client.ts"
import type { Live } from "../connect/connection.ts"
import { request } from "../connect/request.ts"
import { toBrokerError } from "../toBrokerError.ts"

/** Hears once what became of a publication; `undefined` is well. */
export type Answer = (error: BrokerError.BrokerError | undefined) => void

export interface Confirms {
  readonly live: Live
  readonly isOpen: () => boolean
  readonly write: (publication: Client.Publication, answer: Answer) => void
  /** Closes it; what is still unconfirmed fails. */
  readonly abandon: () => void
}

interface Unconfirmed extends Bag.Member {
  readonly publication: Client.Publication
  isReturned: boolean
}

/** A returned message has no number. Those alike share their fate: same exchange, key and id. */
const isAlike = (
  { exchange, options, routingKey }: Client.Publication,
  fields: { readonly exchange: string; readonly routingKey: string },
  messageId: unknown
): boolean => exchange === fields.exchange && routingKey === fields.routingKey && options["messageId"] === messageId

const unroutable = ({ exchange, queue, routingKey }: Client.Publication): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Unroutable",
    detail: `nothing is bound to exchange ${exchange === "" ? "(default)" : exchange} for ${routingKey}`,
    remedy: `Declare the queue, or let the adapter do it with assert: "declare"`
  })

export const open = (live: Live, timeout: number): Effect.Effect<Confirms, BrokerError.BrokerError> =>
  Effect.map(
    request({ operation: "publish" }, timeout, () => live.connection.confirmChannel()),
    (native) => {
      const unconfirmed = Bag.make<Unconfirmed>()
      let isOpen = true
      // Before the driver's own listener, which fails what is unconfirmed: nothing that follows from that is written here.
      native.prependListener("close", () => (isOpen = false))
      native.on("return", ({ fields, properties }) => {
        const returned = fields as unknown as { readonly exchange: string; readonly routingKey: string }
        for (const one of unconfirmed) {
          if (one.isReturned || !isAlike(one.publication, returned, properties.messageId)) continue
          one.isReturned = true
          return
        }
      })

      return {
        live,
        isOpen: () => isOpen,
        write: (publication, answer) => {
          const one: Unconfirmed = { publication, isReturned: false, place: -1 }
          const done = (error: unknown): void => {
            unconfirmed.delete(one)
            if (one.isReturned) answer(unroutable(publication))
            else
              answer(
                error === null ? undefined : toBrokerError(error, { operation: "publish", queue: publication.queue })
              )
          }
          unconfirmed.add(one)
          try {
            Client.publish(native, publication, done)
          } catch (error) {
            done(error)
          }
        },
        abandon: () => {
          if (!isOpen) return
          isOpen = false
          native.close().catch(() => {})
        }
      }
    }
  )
