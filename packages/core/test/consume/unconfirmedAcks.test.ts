import { assert, it } from "@effect/vitest"
import * as Metadata from "../../src/message/Metadata.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import * as UnconfirmedAcks from "../../src/consume/internal/unconfirmedAcks.ts"
import { delivery } from "../items.ts"

it("only acks are remembered, until they are confirmed", () => {
  const acks = UnconfirmedAcks.make()
  acks.remember(delivery("a"), Settlement.Release())
  assert.isTrue(acks.isEmpty())
  acks.remember(delivery("a"), Settlement.Ack)
  acks.confirm(delivery("a"), Settlement.Release())
  assert.isTrue(acks.has(delivery("a", { attempts: 2 })))
  acks.confirm(delivery("a"), Settlement.Ack)
  assert.deepStrictEqual([acks.has(delivery("a")), acks.isEmpty()], [false, true])
})

it("another message with the same id is not taken for the one that was acked", () => {
  const acks = UnconfirmedAcks.make()
  acks.remember(delivery("a"), Settlement.Ack)
  assert.isFalse(acks.has(delivery("a", { metadata: Metadata.make("a", 1) })))
})
