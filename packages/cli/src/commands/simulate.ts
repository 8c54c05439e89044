/** `requeue simulate`: shows the schedule of a policy, and what it does in an outage. */
import { ConsumerBackoff, RetryPolicy } from "@requeue/core"
import { ConsumerOptions } from "@requeue/core/port"
import { Outage, OutageReport as Report } from "@requeue/operations"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as DurationFlag from "../DurationFlag.ts"
import * as NumberFlag from "../NumberFlag.ts"
import * as OutageReport from "../OutageReport.ts"
import { Output } from "../Output.ts"
import * as Policy from "../Policy.ts"
import * as ScheduleReport from "../ScheduleReport.ts"
import * as Target from "../Target.ts"
import * as TextFlag from "../TextFlag.ts"
import { UsageError } from "../UsageError.ts"

const hour = 3_600_000

const flags = {
  config: Target.flags.config,
  queue: TextFlag.make("queue").pipe(
    Flag.withAlias("q"),
    Flag.withMetavar("NAME"),
    Flag.withDescription("A queue of the config file, whose policies are simulated"),
    Flag.optional
  ),
  policy: Policy.flag,
  outage: DurationFlag.make("outage", 24 * hour).pipe(
    Flag.withDescription(
      "Simulate an outage of this length of a dependency of the handler. Default: only the schedule"
    ),
    Flag.optional
  ),
  rate: NumberFlag.positive("rate", 100_000).pipe(
    Flag.withDescription("Messages a second, on average. Default 10"),
    Flag.withDefault(10)
  ),
  share: NumberFlag.positive("share", 1).pipe(
    Flag.withDescription("The share of handler runs that fail during the outage, above 0 and up to 1. Default 1"),
    Flag.withDefault(1)
  ),
  handlerTime: DurationFlag.make("handler-time", hour).pipe(
    Flag.withDescription("How long one handler run takes. Default 100ms"),
    Flag.withDefault(100)
  ),
  concurrency: NumberFlag.whole("concurrency", 1, 100_000).pipe(
    Flag.withDescription(
      "Handlers at a time. Default: those of the queue in the config file, else twice as many as the rate needs"
    ),
    Flag.optional
  ),
  consumerBackoff: Flag.Literals("consumer-backoff", [...ConsumerBackoff.forms, "off"]).pipe(
    Flag.withDescription(
      "The form of consumer backoff, which pauses the consumer while handlers fail. Default: that of the queue in the config file"
    ),
    Flag.optional
  ),
  rounds: NumberFlag.whole("rounds", 1, 10_000).pipe(
    Flag.withDescription("The number of simulated outages. Default 20"),
    Flag.withDefault(20)
  ),
  seed: NumberFlag.whole("seed", 0, 2 ** 32 - 1).pipe(
    Flag.withDescription("The seed of the random numbers; the same seed has the same result. Default 1"),
    Flag.withDefault(1)
  )
}

type Asked = Command.Command.Config.Infer<typeof flags>

const scenarioOf = (options: ConsumerOptions.Options, outage: number, asked: Asked) => {
  const { handlerTime, rate, seed, share } = asked
  const found = Outage.scenario(options, {
    rate,
    outage,
    share,
    handlerTime,
    seed,
    concurrency: Option.getOrUndefined(asked.concurrency),
    consumerBackoff: Option.getOrUndefined(asked.consumerBackoff)
  })
  if (!("field" in found)) return Effect.succeed(found)
  const { detail, field, remedy } = found
  return Effect.fail(new UsageError({ detail: `--${field}: ${detail}`, remedy }))
}

/** Simulates outages one after another, so the program can be interrupted in between. */
const simulated = (scenario: Outage.Scenario, rounds: number) =>
  Effect.gen(function* () {
    const { done, progress } = yield* Output
    return yield* Effect.forEach(Array.from({ length: rounds }), (_, index) =>
      Effect.gen(function* () {
        yield* progress(`outage ${index + 1} of ${rounds}`)
        yield* Effect.yieldNow
        return Outage.run({ ...scenario, seed: (scenario.seed + index) >>> 0 })
      })
    ).pipe(Effect.ensuring(done))
  })

export const simulate = Command.make("simulate", flags, (asked) =>
  Effect.gen(function* () {
    const { paint, result } = yield* Output
    const { options } = yield* Target.policies(asked.config, asked.queue, asked.policy)
    const policy = options.retry ?? RetryPolicy.make()
    const description = RetryPolicy.describe(policy, ConsumerOptions.resolve(options).retryDelay)
    if (Option.isNone(asked.outage)) {
      return yield* result(ScheduleReport.value(description), () => ScheduleReport.text(description, paint))
    }
    const scenario = yield* scenarioOf(options, asked.outage.value, asked)
    const report = Report.make(scenario, yield* simulated(scenario, asked.rounds))
    yield* result({ ...ScheduleReport.value(description), outage: report }, () =>
      [description.text, OutageReport.text(report, paint)].join("\n\n")
    )
  })
).pipe(
  Command.withDescription(
    "Shows the schedule of a retry policy: every delay, the most handler runs, the longest time. With --outage, simulates " +
      "that a dependency of the handler is down while messages keep arriving: how many become dead letters, how large the " +
      "backlog gets, how long it takes to recover. No broker is needed."
  ),
  Command.withShortDescription("A policy's schedule, and its effect in an outage"),
  Command.withExamples([
    { command: "requeue simulate --queue orders", description: "The schedule of a queue of the config file" },
    { command: "requeue simulate --policy webhookSender", description: "The schedule of a preset" },
    {
      command: "requeue simulate --queue orders --outage 15m --rate 50 --handler-time 200ms",
      description: "What an outage of 15 minutes does at 50 messages a second"
    },
    {
      command: "requeue simulate --policy '{\"maxRetries\":3}' --outage 1m --consumer-backoff consecutive",
      description: "Whether pausing the consumer saves a policy with few retries"
    }
  ])
)
