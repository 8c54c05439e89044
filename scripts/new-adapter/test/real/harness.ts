/**
 * The real Acme, with a harness that reads it directly. It uses the broker's driver, and never the adapter's consumer: see the
 * MUSTs in `packages/conformance/src/Harness.ts`. `toDelivery` reads the driver's messages.
 */
import { Harness } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AcmeBroker } from "../../src/index.ts"
import { notWritten } from "../../src/internal/notWritten.ts"

const unwritten = (member: string) =>
  Effect.fail(notWritten(member, "the harness, whose MUSTs", "test/real/harness.ts"))

export const layer = Layer.effectContext(
  Effect.gen(function* () {
    const url = process.env["REQUEUE_ACME_URL"] ?? "acme://localhost"
    const broker = yield* AcmeBroker.make({ url })
    const harness = Harness.Harness.of({
      name: "acme",
      uniqueQueue: () => unwritten("uniqueQueue"),
      publishRaw: () => unwritten("publishRaw"),
      deadLetters: () => unwritten("deadLetters"),
      pending: () => unwritten("pending"),
      // A missing ability is undefined: the suite rejects a harness that lacks a member.
      cutConnections: undefined,
      restart: undefined,
      another: AcmeBroker.make({ url }),
      failNext: undefined,
      deleteQueue: undefined,
      foreignQueue: undefined,
      crash: undefined,
      powerCut: undefined,
      transactions: undefined,
      lateness: 100,
      settleTime: 50
    })
    return Context.make(Broker.Broker, broker).pipe(Context.add(Harness.Harness, harness))
  })
)
