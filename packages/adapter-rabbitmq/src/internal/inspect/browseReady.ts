/** Shows the ready messages of a queue, page by page. Messages that are not removed stay, in order. */
import { BoundedMap, type Broker, type BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import type { Settings } from "../../RabbitMqOptions.ts"
import { givenUp } from "../consume/givenUp.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import * as NameRules from "../nameRules.ts"
import * as Names from "../names.ts"
import { republishInPlace } from "../publish/republishInPlace.ts"
import type { Publisher } from "../publish/publisher.ts"
import { direct, toPublication } from "../publish/toPublication.ts"
import * as Version from "../version.ts"
import * as Wire from "../wire.ts"
import * as Browser from "./browser.ts"
import { byConsumer, byGet, type Content, type Source, type Way } from "./browseSession.ts"

/** The broker's own. */
export interface Dependencies extends Browser.Dependencies {
  /** The queue as it is, if known. */
  readonly found: (queue: string) => RabbitMqQueue
  readonly publisher: Pick<Publisher, "submit">
  readonly settings: Pick<Settings, "names" | "prefix">
}

/**
 * The copy that replaces a message. It keeps the attempts that a work queue has counted. A dead letter of the server states in its
 * headers what the server reported about it.
 */
const successor = (queue: string, { decoded, message }: Content, { now, settings, uniqueName }: Dependencies) => {
  const { body, formerReturns, headers, isOurs, isUncounted, metadata, returns } = decoded
  const isTold = isUncounted && givenUp(message, 0, now) === undefined
  if (isTold || !isOurs) return republishInPlace(queue, message, uniqueName())
  const copy = {
    copy: uniqueName(),
    isDelay: Names.isOfDelay(settings, queue),
    returns: isUncounted ? undefined : (formerReturns ?? 0) + returns
  }
  return toPublication({ queue, body, headers, delay: 0, metadata }, direct(queue), copy, Wire.propertiesOf(message))
}

const sourceOf = (queue: string, env: Dependencies): Source => {
  const { found, now, publisher, serverVersion } = env
  const type = () => found(queue).type
  return {
    queue,
    isDelayed: false,
    closes: false,
    isCounted: Version.countsReleases(type() === "quorum" ? "quorum" : "classic", serverVersion()),
    read: (message) =>
      toDelivery(message, { type: type(), serverVersion: serverVersion(), keepsNotBefore: false, now }),
    // Uses half of the limit. If the limit is unknown, no message is returned twice.
    isNear: ({ decoded }) => {
      const { deliveryLimit } = found(queue)
      return decoded.returns >= (deliveryLimit === undefined ? 1 : deliveryLimit / 2)
    },
    copy: (contents) =>
      Promise.all(
        contents.map((one) => new Promise((resolve) => void publisher.submit(successor(queue, one, env), resolve)))
      )
  }
}

/** The number of names to remember. */
const maxNames = 20_000

/** Opens a browser on the ready messages of a queue. */
export const open = (
  { limit, queue }: Pick<Broker.BrowseOptions, "queue" | "limit">,
  env: Dependencies
): Effect.Effect<Broker.Browser, never, Scope.Scope> =>
  Effect.map(Browser.sessions, ({ current, enter, leave }) => {
    const isQueue = NameRules.isQueue(queue)
    let [opening, isWhole] = [0, !isQueue]
    /**
     * By the name of each copy, the opening that showed it last. One opening shows each message once, so a name that it shows twice
     * belongs to two messages and identifies none. So does a known name of a message that is delivered for the first time.
     */
    const names = BoundedMap.make<number | "repeated">(maxNames)

    const opened = (way: Way) =>
      Effect.suspend(() => {
        const session = current()
        // One that was lost with messages says so.
        if (session !== undefined && (session.isOpen() || Browser.shownOf(session) > 0)) return Effect.succeed(session)
        opening++
        return enter(Browser.open(sourceOf(queue, env), way, env))
      })

    const page = (
      count: number,
      way: Way
    ): Effect.Effect<ReadonlyArray<Broker.BrowsedMessage>, BrokerError.BrokerError> =>
      Effect.gen(function* () {
        const session = yield* opened(way)
        const contents = yield* Browser.show(session, count, limit, env)
        isWhole = session.isWhole
        return contents.map((content) => {
          const delivery = Browser.toDelivery(session, content, queue)
          const { name = "" } = Browser.receiptOf(delivery)
          const last = names.get(name)
          const isOther = last !== undefined && (!content.decoded.redelivered || last === opening)
          names.set(name, isOther ? "repeated" : last === "repeated" ? last : opening)
          return { delivery, due: undefined }
        })
      }).pipe(
        Effect.tapError(() => (current()?.isOpen() === true ? Effect.void : leave)),
        // Another consumer may have exclusive access.
        Effect.catchIf(
          ({ reason }) => reason === "AccessRefused" && way === byConsumer,
          () => page(count, byGet)
        )
      )

    return {
      next: (count) => (isQueue ? page(count, byConsumer) : Effect.succeed([])),
      remove: (deliveries) => Browser.remove(deliveries, queue, env),
      identify: (delivery) => {
        const { name } = Browser.receiptOf(delivery)
        return name === undefined || names.get(name) === "repeated" ? undefined : name
      },
      browsed: () => ({ isWhole, hidden: undefined })
    }
  })
