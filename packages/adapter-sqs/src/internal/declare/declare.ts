/**
 * Queues as they are on SQS: found by name, created where they are missing and may be, and compared with their plan.
 *
 * What exists is not changed, with two exceptions in mode `create`: a queue without a redrive policy, as a producer makes
 * it, gets the planned one, and a dead-letter queue that lets in named queues only gets one more name.
 */
import { BrokerError, ConfigurationError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Settings } from "../../SqsOptions.ts"
import * as Plan from "../../SqsPlan.ts"
import type { Client } from "../client.ts"
import { allowanceOf, redriveOf } from "./verify.ts"
import { toBrokerError } from "../toBrokerError.ts"

export interface Queue {
  readonly url: string
  readonly fifo: boolean
}

export interface Queues {
  /** The queue of this name, asked once; made, as a producer's, where it is missing and may be. */
  readonly find: (queue: string) => Effect.Effect<Queue, BrokerError.BrokerError>
  /** The same for who only looks: nothing is made. */
  readonly see: (queue: string) => Effect.Effect<Queue, BrokerError.BrokerError>
  /**
   * Makes, verifies or finds all queues of a consumer; fails when they cannot keep its policy.
   *
   * @param lease milliseconds that a delivery stays with us without its visibility being extended
   */
  readonly ensure: (request: Plan.Request, lease?: number) => Effect.Effect<Queue, BrokerError.BrokerError>
  /** What is there of a plan. */
  readonly inspect: (plan: Plan.Plan) => Effect.Effect<Plan.Found, BrokerError.BrokerError>
  /** The queue turned out to be gone. */
  readonly forget: (queue: string) => void
}

const mismatch = ({ attribute, detail, found, queue, remedy }: Plan.Finding): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "sqs",
    operation: "verify",
    queue,
    reason: found === undefined && attribute === "QueueName" ? "QueueMissing" : "QueueMismatch",
    detail: `${attribute}: ${detail}`,
    remedy
  })

const isMissing = ({ reason }: BrokerError.BrokerError): boolean => reason === "QueueMissing"

const isUnsupported = ({ reason }: BrokerError.BrokerError): boolean => reason === "Unsupported"

/** A queue that was made just now may not be known everywhere for a second. */
const settled = <A>(effect: Effect.Effect<A, BrokerError.BrokerError>): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.retry(effect, { while: isMissing, schedule: Schedule.spaced(500), times: 6 })

const orUndefined = <A>(
  effect: Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<A | undefined, BrokerError.BrokerError> =>
  Effect.catchIf(effect, isMissing, () => Effect.succeed(undefined))

export const make = (
  client: Pick<Client, "getQueueUrl" | "createQueue" | "getQueueAttributes" | "setQueueAttributes">,
  settings: Settings
): Queues => {
  const known = new Map<string, Queue>()

  const ask = <A>(operation: string, queue: string, run: () => Promise<A>): Effect.Effect<A, BrokerError.BrokerError> =>
    Effect.tryPromise({ try: run, catch: (cause) => toBrokerError(cause, { operation, queue }) })

  const planOf = (request: Plan.Request): Effect.Effect<Plan.Plan, BrokerError.BrokerError> => {
    const plan = Plan.make(request, settings)
    return plan instanceof ConfigurationError.ConfigurationError
      ? Effect.fail(BrokerError.ofPlan("sqs", plan))
      : Effect.succeed(plan)
  }

  const remember = ({ name, queue }: Plan.Queue, url: string): Queue => {
    const one = { url, fifo: name.fifo }
    known.set(queue, one)
    return one
  }

  const locate = (planned: Plan.Queue): Effect.Effect<Queue, BrokerError.BrokerError> =>
    Effect.suspend(() => {
      const { name, queue } = planned
      const one = known.get(queue)
      if (one !== undefined) return Effect.succeed(one)
      const account = name.account ?? settings.address.account
      const owner = account === undefined ? {} : { QueueOwnerAWSAccountId: account }
      return Effect.map(
        ask("find", queue, () => client.getQueueUrl({ QueueName: name.name, ...owner })),
        ({ QueueUrl }) => remember(planned, QueueUrl!)
      )
    })

  const attributesOf = (planned: Plan.Queue): Effect.Effect<Plan.Attributes, BrokerError.BrokerError> =>
    Effect.flatMap(locate(planned), ({ url }) =>
      ask("verify", planned.queue, () => client.getQueueAttributes({ QueueUrl: url, AttributeNames: ["All"] }))
    ).pipe(
      Effect.map(({ Attributes = {} }) => Attributes),
      Effect.tapError((error) => Effect.sync(() => isMissing(error) && known.delete(planned.queue)))
    )

  const change = (planned: Plan.Queue, attributes: Plan.Attributes): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.flatMap(locate(planned), ({ url }) =>
      ask("create", planned.queue, () => client.setQueueAttributes({ QueueUrl: url, Attributes: attributes }))
    )

  /** True when it was not there. */
  const createOne = Effect.fnUntraced(function* (planned: Plan.Queue, tags: Plan.Attributes) {
    if ((yield* orUndefined(attributesOf(planned))) !== undefined) return false
    const { QueueUrl } = yield* ask("create", planned.queue, () =>
      client.createQueue({ QueueName: planned.name.name, Attributes: planned.attributes, tags })
    )
    remember(planned, QueueUrl!)
    yield* settled(attributesOf(planned))
    return true
  })

  /** Lets SQS move messages from one to the other. A dead-letter queue that lets everybody in stays as it is. */
  const connect = Effect.fnUntraced(function* (work: Plan.Queue, letters: Plan.Queue, isNew: boolean) {
    const source = yield* attributesOf(work)
    if (redriveOf(source) !== undefined) return
    const target = yield* attributesOf(letters)
    const { permission, sources } = allowanceOf(target)
    const arn = source["QueueArn"]!
    const isFull = sources.length >= Plan.allowedSources
    if ((isNew || permission === "byQueue") && !sources.includes(arn) && !isFull) {
      const policy = { RedriveAllowPolicy: Plan.redriveAllowPolicy([...sources, arn]) }
      // It only keeps others out, and servers for development do not know it.
      yield* Effect.catchIf(change(letters, policy), isUnsupported, ({ detail }) => Effect.logInfo(detail))
    }
    yield* change(work, { RedrivePolicy: Plan.redrivePolicy(work, target["QueueArn"]!) })
  })

  const create = Effect.fnUntraced(function* ({ queues, tags }: Plan.Plan) {
    const made = new Set<Plan.Queue>()
    for (const planned of queues) if (yield* createOne(planned, tags)) made.add(planned)
    const work = queues.find(({ redrive }) => redrive !== undefined)
    const letters = queues.find(({ redriveFrom }) => redriveFrom !== undefined)
    if (work !== undefined && letters !== undefined) yield* connect(work, letters, made.has(letters))
  })

  const inspect = Effect.fnUntraced(function* ({ queues }: Plan.Plan) {
    const found = new Map<string, Plan.Attributes | undefined>()
    for (const planned of queues) found.set(planned.name.name, yield* orUndefined(attributesOf(planned)))
    return found
  })

  const ensure = Effect.fnUntraced(function* (request: Plan.Request, lease = 0) {
    const plan = yield* planOf(request)
    for (const note of plan.notes) yield* Effect.annotateLogs(Effect.logInfo(note), { queue: request.queue })
    if (plan.mode === "create") yield* create(plan)
    if (plan.mode === "use") yield* Effect.forEach(plan.queues, locate)
    else {
      const wrong = Plan.verify(plan, yield* inspect(plan), lease).find(({ isGood }) => !isGood)
      if (wrong !== undefined) return yield* mismatch(wrong)
    }
    return yield* locate(plan.queues.at(-1)!)
  })

  return {
    find: (queue) =>
      Effect.suspend(() => {
        const one = known.get(queue)
        return one === undefined ? ensure({ queue }) : Effect.succeed(one)
      }),
    see: (queue) => Effect.flatMap(planOf({ queue }), ({ queues }) => locate(queues.at(-1)!)),
    ensure,
    inspect,
    forget: (queue) => void known.delete(queue)
  }
}
