/** Deliveries for the core, from a message and what this process knows about it. */
import type { Delivery, Lane, Message as Core } from "@requeue/core/port"
import type { Message } from "../client.ts"
import { told } from "../native.ts"
import * as Wire from "../wire.ts"
import type { Receipt } from "./receipt.ts"
import { type Context, toDelivery } from "./toDelivery.ts"

const none: Core.Native = Object.freeze({})

/** A class: an object literal with a getter would be slow to create and to read. */
class Arrived implements Delivery.Delivery {
  readonly body: Uint8Array
  readonly headers: Delivery.Delivery["headers"]
  readonly attempts: number
  readonly metadata: Delivery.Delivery["metadata"]
  readonly unreadable: Delivery.Delivery["unreadable"]
  readonly group: string | undefined
  readonly place: Lane.Place | undefined
  readonly receipt: Pick<Receipt, "messageId"> | undefined
  readonly #message: Message
  constructor(message: Message, context: Context, group: string | undefined, receipt: Arrived["receipt"]) {
    const { attempts, body, headers, metadata, unreadable } = toDelivery(message, context)
    this.body = body
    this.headers = headers
    this.attempts = attempts
    this.metadata = metadata
    this.unreadable = unreadable
    this.group = group
    const isKey = group !== undefined && group !== Wire.defaultGroup && context.fifoRetry !== "resend"
    this.place = isKey ? { key: group } : undefined
    this.receipt = receipt
    this.#message = message
  }
  get native(): Core.Native {
    return this.unreadable === undefined ? told(this.#message) : none
  }
}

/** Returns the delivery of a message; without a receipt it cannot be settled. */
export const arrived = (
  message: Message,
  context: Context,
  group: string | undefined,
  receipt?: Pick<Receipt, "messageId">
): Delivery.Delivery => new Arrived(message, context, group, receipt)
