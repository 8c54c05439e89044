/**
 * Why a queue is not consumed although nsqd is reachable: every nsqd refuses it, or its channel is paused. nsqd does
 * not notify consumers of a pause, so the adapter polls for it.
 * https://nsq.io/components/nsqd.html#post-channelpause
 */
import { BrokerError, Log, Trouble } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Node } from "../connect/nodes.ts"
import type { Access } from "../http.ts"
import type { Queue } from "../names.ts"
import * as NsqdStats from "../nsqdStats.ts"
import type { Topics } from "./topics.ts"

/** Milliseconds between two checks of a queue. */
const interval = 2000

/** The least milliseconds for each consumer of the connection: each check is a request on a new connection. */
const share = 40

/** A topic's channel on one nsqd. */
interface Place {
  readonly topic: Queue
  readonly node: Node
}

interface Dependencies extends Access {
  readonly now: () => number
  /** One for each consumer. */
  readonly connectionCounts: ReadonlySet<unknown>
}

const paused = (queue: string, { channel, topic }: Queue): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: "consume",
    queue,
    reason: "Throttled",
    detail: `the channel ${channel} of the topic ${topic}, or the topic, is paused on every nsqd that has it`,
    remedy: "Unpause the channel or topic, for example in nsqadmin, to consume its messages"
  })

/** Checks until the scope closes. A channel that is paused on every nsqd is a trouble; on some, it is logged. */
export const watch = (
  queue: string,
  topics: ReadonlyArray<Queue>,
  { nodesOf, refusalOf }: Pick<Topics, "nodesOf" | "refusalOf">,
  { connectionCounts: consumers, now, ...access }: Dependencies
): Effect.Effect<Trouble.Tracker, never, Scope.Scope> =>
  Effect.gen(function* () {
    const trouble = Trouble.track(queue, now)
    let logged = ""

    const isPaused = ({ node: { address }, topic }: Place) =>
      NsqdStats.depths(address.http!, topic, access).pipe(
        Effect.map((depths) => depths.isPaused),
        Effect.orElseSucceed(() => undefined)
      )

    const pausedOf = Effect.fnUntraced(function* (topic: Queue) {
      const asked = nodesOf(topic).filter(({ address }) => address.http !== undefined)
      const answers = yield* Effect.forEach(asked, (node) => isPaused({ node, topic }), { concurrency: "unbounded" })
      const names = asked.filter((_, index) => answers[index] === true).map(({ name }) => name)
      return { topic, paused: names, isAll: names.length > 0 && answers.every((each) => each !== false) }
    })

    const check = Effect.gen(function* () {
      const all = yield* Effect.forEach(topics, pausedOf)
      const whole = all.find(({ isAll }) => isAll)
      const refusal = topics.map(refusalOf).find((error) => error !== undefined)
      const error = refusal ?? (whole && paused(queue, whole.topic))
      yield* error === undefined ? trouble.over : trouble.tell(error)
      const some = all.filter(({ isAll, paused }) => paused.length > 0 && !isAll)
      const text = some.map(({ paused, topic }) => `${topic.topic} on ${paused.join(", ")}`).join("; ")
      if (text !== logged && text !== "") {
        yield* Log.warning("paused on some nsqd: their messages wait", { queue, paused: text })
      }
      logged = text
    })
    const pause = Effect.suspend(() => Effect.sleep(Duration.millis(Math.max(interval, share * consumers.size))))
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(check, pause)))
    return trouble
  })
