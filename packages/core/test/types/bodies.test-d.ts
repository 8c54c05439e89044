/**
 * A type test: a queue's codec decides the type of its bodies, wherever the queue is used, and a plain name decides nothing.
 * Nothing here runs; `npm run check -- types` compiles it.
 */
import { Codec, Consumer, Producer, Puller, QueueDefinition } from "@requeue/core"
import { bytes, json, queue, type Received, type Requeue, standard, text } from "@requeue/core/promise"
import { Effect, Schema } from "effect"
import { expectTypeOf } from "vitest"
import * as Schemas from "../message/schemas.ts"

declare const requeue: Requeue

interface Order {
  readonly id: string
  readonly total: number
}

const orders = queue<Order>("orders")
const lines = queue("lines", { codec: text })
const checked = queue("orders", { codec: standard(Schema.toStandardSchemaV1(Schema.Struct({ id: Schema.String }))) })

/** What a handler gets of a schema that transforms, and what is sent to it. */
interface Read {
  items: Array<{ price: number }>
  at: Date
}
interface Written {
  items: Array<{ price: number }>
  at: string
}
interface Frozen<Time> {
  readonly items: ReadonlyArray<{ readonly price: number }>
  readonly at: Time
}

const zod = queue("orders", { schema: Schemas.orders.zod })
const valibot = queue("orders", { schema: Schemas.orders.valibot })
const arktype = queue("orders", { schema: Schemas.orders.arktype })
const effect = queue("orders", { schema: Schemas.orders.effect })

expectTypeOf(orders).toEqualTypeOf<QueueDefinition.QueueDefinition<Order>>()
expectTypeOf(lines).toEqualTypeOf<QueueDefinition.QueueDefinition<string>>()
expectTypeOf(checked).toEqualTypeOf<QueueDefinition.QueueDefinition<{ readonly id: string }>>()
expectTypeOf(zod).toEqualTypeOf<QueueDefinition.QueueDefinition<Read, Written>>()
expectTypeOf(valibot).toEqualTypeOf<QueueDefinition.QueueDefinition<Read, Written>>()
expectTypeOf(arktype).toEqualTypeOf<QueueDefinition.QueueDefinition<Read, Written>>()
expectTypeOf(effect).toEqualTypeOf<QueueDefinition.QueueDefinition<Frozen<Date>, Frozen<string>>>()
expectTypeOf(queue("files", { codec: bytes })).toEqualTypeOf<QueueDefinition.QueueDefinition<Uint8Array>>()
expectTypeOf(queue("anything", { codec: json })).toEqualTypeOf<QueueDefinition.QueueDefinition<any>>()
expectTypeOf(queue("anything")).toEqualTypeOf<QueueDefinition.QueueDefinition<any>>()

/** What arrives has the queue's type. */
export const received = [
  () => requeue.consume(orders, {}, ({ body }) => expectTypeOf(body).toEqualTypeOf<Order>()),
  () => requeue.consume(lines, {}, ({ body }) => expectTypeOf(body).toEqualTypeOf<string>()),
  () => requeue.consume(checked, {}, ({ body }) => expectTypeOf(body).toEqualTypeOf<{ readonly id: string }>()),
  () =>
    requeue.consumeBatch(orders, {}, ({ messages }) =>
      expectTypeOf(messages[0]?.body).toEqualTypeOf<Order | undefined>()
    ),
  async () => {
    const pulled = await (await requeue.puller(orders)).pull()
    expectTypeOf(pulled?.messages[0]?.body).toEqualTypeOf<Order | undefined>()
  },
  () => Consumer.start(orders, {}, ({ body }) => void expectTypeOf(body).toEqualTypeOf<Order>()),
  () => Consumer.startBatch(orders, {}, ({ messages }) => void expectTypeOf(messages[0]!.body).toEqualTypeOf<Order>()),
  () =>
    Effect.gen(function* () {
      const pulled = yield* (yield* Puller.make(orders)).pull()
      expectTypeOf(pulled?.messages[0]?.body).toEqualTypeOf<Order | undefined>()
    })
]

/** What is sent must have it. */
export const sent = [
  () => expectTypeOf(requeue.send(orders, { id: "1", total: 2 })).toEqualTypeOf<Promise<string>>(),
  () => expectTypeOf(requeue.sendBatch(orders, [])).toEqualTypeOf<Promise<ReadonlyArray<string>>>(),
  () => requeue.sendBatch(orders, [{ body: { id: "1", total: 2 }, delay: "1 minute" }], { delay: "5 seconds" }),
  () =>
    Effect.gen(function* () {
      const producer = yield* Producer.make(orders)
      expectTypeOf(producer).toEqualTypeOf<Producer.Producer<Order>>()
      yield* producer.send({ id: "1", total: 2 })
      // @ts-expect-error the total is missing
      yield* producer.send({ id: "1" })
      // @ts-expect-error the total is missing
      yield* producer.sendBatch([{ body: { id: "1" } }])
    })
]

/** A schema's input is sent, and its output received. */
export const transformed = [
  () => requeue.send(zod, { items: [{ price: 1 }], at: "2026-01-01" }),
  () => requeue.sendBatch(valibot, [{ body: { items: [], at: "2026-01-01" } }]),
  // @ts-expect-error a date is what handlers get
  () => requeue.send(arktype, { items: [], at: new Date() }),
  // @ts-expect-error a date is what handlers get
  () => requeue.sendBatch(zod, [{ body: { items: [], at: new Date() } }]),
  () =>
    Effect.gen(function* () {
      const producer = yield* Producer.make(effect)
      yield* producer.send({ items: [], at: "2026-01-01" })
      // @ts-expect-error a date is what handlers get
      yield* producer.send({ items: [], at: new Date() })
    }),
  () => requeue.consume(zod, {}, ({ body }) => expectTypeOf(body).toEqualTypeOf<Read>()),
  () => requeue.consumeBatch(valibot, {}, ({ messages }) => expectTypeOf(messages[0]!.body).toEqualTypeOf<Read>()),
  () => Consumer.start(arktype, {}, ({ body }) => void expectTypeOf(body).toEqualTypeOf<Read>()),
  async () => expectTypeOf((await (await requeue.puller(zod)).pull())!.messages[0]!.body).toEqualTypeOf<Read>(),
  // @ts-expect-error text is what is sent
  () => requeue.consume(zod, {}, (_message: Received<Written>) => {})
]

export const refused = [
  // @ts-expect-error the total is missing
  () => requeue.send(orders, { id: "1" }),
  // @ts-expect-error orders have no note
  () => requeue.send(orders, { id: "1", total: 2, note: "" }),
  // @ts-expect-error lines are text
  () => requeue.send(lines, 1),
  // @ts-expect-error the total is missing
  () => requeue.sendBatch(orders, [{ body: { id: "1", total: 2 } }, { body: { id: "1" } }]),
  // @ts-expect-error the body is missing
  () => requeue.sendBatch(orders, [{ headers: {} }]),
  // @ts-expect-error orders are no text
  () => requeue.consume(orders, {}, (_message: Received<string>) => {}),
  // @ts-expect-error orders have no note
  () => requeue.consume(orders, {}, ({ body }) => body.note),
  // @ts-expect-error orders are no text
  () => Consumer.start(orders, {}, (_message: Received<string>) => {}),
  // @ts-expect-error this codec reads and writes text
  () => queue<Order>("orders", { codec: text }),
  // @ts-expect-error a codec that reads less than it is asked for is none
  (): Codec.Codec<Order> => Codec.standard(Schema.toStandardSchemaV1(Schema.Struct({ id: Schema.String })))
]

/** Of a plain name nothing is known: handlers get `any`, and every body may be sent. */
export const plain = [
  () => requeue.consume("orders", {}, ({ body }) => expectTypeOf(body).toBeAny()),
  () => requeue.consumeBatch("orders", {}, ({ messages }) => expectTypeOf(messages[0]!.body).toBeAny()),
  async () => expectTypeOf((await (await requeue.puller("orders")).pull())!.messages[0]!.body).toBeAny(),
  () => Consumer.start("orders", {}, ({ body }) => void expectTypeOf(body).toBeAny()),
  () => requeue.send("orders", { whatever: 1 }),
  () => requeue.sendBatch("orders", [{ body: 1 }, { body: 2 }]),
  () =>
    Effect.map(Producer.make("orders"), (producer) =>
      expectTypeOf(producer).toEqualTypeOf<Producer.Producer<unknown>>()
    ),
  // Whoever knows better may say so.
  () => requeue.consume<Order>("orders", {}, ({ body }) => expectTypeOf(body).toEqualTypeOf<Order>()),
  () => requeue.consume("orders", {}, (message: Received<Order>) => message.body.total),
  // @ts-expect-error and is held to it
  () => requeue.send<Order>("orders", { id: "1" })
]
