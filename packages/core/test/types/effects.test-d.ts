/**
 * A type test: with Effect, what can fail and what is needed stands in the types.
 * Nothing here runs; `npm run check -- types` compiles it.
 */
import {
  Adapters,
  Broker,
  type BrokerError,
  type ConfigurationError,
  Consumer,
  type Delay,
  type DeadLetterBudget,
  type EncodeError,
  Health,
  Producer,
  Puller
} from "@requeue/core"
import { connect } from "@requeue/core/promise"
import { Context, Effect, Layer, type Scope } from "effect"
import { expectTypeOf } from "vitest"

/** What a handler needs. */
declare class Shop extends Context.Service<Shop, { readonly charge: Effect.Effect<void, "closed"> }>()("Shop") {}
declare class Mail extends Context.Service<Mail, { readonly send: Effect.Effect<void> }>()("Mail") {}
const charge = Shop.use((shop) => shop.charge)
const mail = Mail.use((mail) => mail.send)

type Started<R = never> = Effect.Effect<Consumer.Consumer, Consumer.StartError, Broker.Broker | Scope.Scope | R>

expectTypeOf<Consumer.StartError>().toEqualTypeOf<ConfigurationError.ConfigurationError | BrokerError.BrokerError>()
expectTypeOf<Producer.SendError>().toEqualTypeOf<
  BrokerError.BrokerError | Delay.InvalidDelay | EncodeError.EncodeError
>()

// What a handler needs is needed by its consumer; how it fails is the policy's business.
expectTypeOf(Consumer.start("orders", {}, () => {})).toEqualTypeOf<Started>()
expectTypeOf(Consumer.start("orders", {}, async () => 1)).toEqualTypeOf<Started>()
expectTypeOf(Consumer.start("orders", {}, () => Effect.fail("closed"))).toEqualTypeOf<Started>()
expectTypeOf(Consumer.start("orders", {}, () => charge)).toEqualTypeOf<Started<Shop>>()
expectTypeOf(Consumer.start("orders", {}, () => Effect.andThen(charge, mail))).toEqualTypeOf<Started<Shop | Mail>>()
expectTypeOf(Consumer.startBatch("orders", {}, () => charge)).toEqualTypeOf<Started<Shop>>()
// A handler need not return an Effect every time.
expectTypeOf(Consumer.start("orders", {}, ({ attempts }) => (attempts > 1 ? charge : undefined))).toEqualTypeOf<
  Started<Shop>
>()

expectTypeOf<Consumer.Consumer["done"]>().toEqualTypeOf<
  Effect.Effect<void, DeadLetterBudget.DeadLetterBudgetExhausted>
>()
expectTypeOf<ReturnType<Consumer.Consumer["drain"]>>().toEqualTypeOf<Effect.Effect<Consumer.DrainReport>>()

expectTypeOf(Producer.make<string>("orders")).toEqualTypeOf<
  Effect.Effect<Producer.Producer<string>, ConfigurationError.ConfigurationError, Broker.Broker>
>()
expectTypeOf<ReturnType<Producer.Producer<string>["send"]>>().toEqualTypeOf<Effect.Effect<string, Producer.SendError>>()
expectTypeOf<ReturnType<Producer.Producer<string>["sendBatch"]>>().toEqualTypeOf<
  Effect.Effect<ReadonlyArray<string>, Producer.SendError>
>()

expectTypeOf(Puller.make<string>("orders")).toEqualTypeOf<
  Effect.Effect<Puller.Puller<string>, Consumer.StartError, Broker.Broker | Scope.Scope>
>()
expectTypeOf<ReturnType<Puller.Puller<string>["pull"]>>().toEqualTypeOf<
  Effect.Effect<Puller.PulledBatch<string> | undefined, Puller.PullerDrained>
>()

expectTypeOf(Health.check([])).toEqualTypeOf<Effect.Effect<Health.Health, never, Broker.Broker>>()
expectTypeOf(Adapters.layer("memory:")).toEqualTypeOf<
  Layer.Layer<Broker.Broker, BrokerError.BrokerError | ConfigurationError.ConfigurationError>
>()

const program = Effect.scoped(Consumer.start("orders", {}, () => charge))
declare const shop: Layer.Layer<Shop>
declare const brokerOfShop: Layer.Layer<Broker.Broker, never, Shop>

export const accepted = [
  () => Effect.runPromise(Effect.provide(program, Layer.merge(Adapters.layer("memory:"), shop))),
  () => connect(Adapters.layer("memory:"))
]

export const refused = [
  // @ts-expect-error the handler needs the shop
  () => Effect.runPromise(Effect.provide(program, Adapters.layer("memory:"))),
  // @ts-expect-error the consumer needs a broker
  () => Effect.runPromise(Effect.provide(program, shop)),
  // @ts-expect-error nobody could give this broker its shop
  () => connect(brokerOfShop),
  // @ts-expect-error a shop is no broker
  () => connect(shop)
]
