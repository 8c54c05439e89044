/** Scenarios as JSON files, read strictly: an unknown name or a value out of its range would make another world. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Scenario from "./Scenario.ts"

/** The version of the format. */
const format = 1

const { optionalKey } = Schema
const list = <S extends Schema.Constraint>(schema: S) => Schema.Array(schema)
const strict = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields).annotate({ messageUnexpectedKey: `unknown key; known are ${Object.keys(fields).join(", ")}` })

/** A day more than any delay of a world. Longer times would only make it stand still. */
const longest = 365 * 24 * 3_600_000

const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))
const whole = (minimum: number, maximum = Number.MAX_SAFE_INTEGER) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const Millis = between(0, longest)
const Signed = between(-longest, longest)
const Part = between(0, 1)
const Name = Schema.NonEmptyString

const Call = strict({
  name: Schema.Literals(["ack", "retry", "fail"]),
  on: Schema.Literals(["own", "all"]),
  delay: optionalKey(Schema.Finite),
  error: optionalKey(Schema.Literals(["permanent", "drop", "retryAfter"]))
})

const Behaviour = strict({
  takes: Schema.Union([Millis, Schema.Literal("forever")]),
  stubborn: optionalKey(Schema.Boolean),
  first: optionalKey(list(Call)),
  last: optionalKey(list(Call)),
  late: optionalKey(list(Call)),
  throws: optionalKey(Schema.Literals(Scenario.thrown)),
  kills: optionalKey(Schema.Boolean),
  releases: optionalKey(Schema.Boolean),
  meddles: optionalKey(Schema.Boolean),
  within: optionalKey(strict({ takes: Millis, ends: Schema.Literals(["commit", "rollback", "kill"]) }))
})

const Sending = strict({
  key: whole(1),
  at: Millis,
  by: Schema.Literals(["ours", "foreign"]),
  id: Schema.String,
  delay: Millis,
  group: optionalKey(Name),
  share: optionalKey(Name),
  header: optionalKey(whole(1, 100_000)),
  body: Schema.Literals(["good", "undecodable", "slowToDecode", "neverDecoded"]),
  metadata: optionalKey(Schema.String),
  runs: list(Behaviour)
})

const Refusal = strict({
  key: whole(1),
  of: Schema.Literals(["copy", "retry", "again", "deadLetter"]),
  until: whole(0, 5),
  ends: optionalKey(Schema.Boolean),
  reason: Schema.Literals(["BodyTooLarge", "Unroutable", "AccessRefused"])
})

const Process = strict({
  name: Schema.String.check(Schema.isPattern(/^[a-z]+$/)),
  versions: list(whole(0)).check(Schema.isMinLength(1)),
  startsAt: Millis,
  lives: list(strict({ lasts: Millis, ends: Schema.Literals(["kill", "drain"]), away: Millis })),
  freezes: list(strict({ at: Millis, for: Millis })),
  clock: strict({
    offset: Signed,
    speed: between(0.1, 10),
    jumps: list(strict({ at: Millis, by: Signed }))
  })
})

const RateLimit = strict({ max: whole(1, 10_000), per: between(1, 24 * 3_600_000) })

const Version = strict({
  maxAttempts: whole(1),
  maxDeliveries: whole(1),
  immediate: whole(0),
  backoff: list(Millis),
  maxAge: optionalKey(Millis),
  deadLetter: optionalKey(Name),
  concurrency: whole(1, 1000),
  prefetch: whole(0, 10_000),
  batch: optionalKey(strict({ size: whole(1, 100), wait: between(0, 60_000) })),
  each: optionalKey(Schema.Boolean),
  pull: optionalKey(
    strict({ loops: whole(1, 1000), wait: Millis, timeout: optionalKey(Millis), pause: between(1, longest) })
  ),
  rateLimit: optionalKey(RateLimit),
  shareLimits: optionalKey(strict({ concurrency: optionalKey(whole(1, 1000)), rateLimit: optionalKey(RateLimit) })),
  handlerTimeout: between(1, 12 * 3_600_000),
  drainTimeout: Millis,
  consumerBackoff: optionalKey(strict({ multiplier: Millis, max: Millis, stepwise: Schema.Boolean })),
  promise: optionalKey(Schema.Boolean),
  budget: optionalKey(strict({ max: whole(1), perSuccess: between(0, 1000) })),
  hook: Schema.Literals(["none", "throws", "throwsUnprintable"]),
  redact: Schema.Literals(["none", "throws"])
})

const what = <Tag extends string, Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  strict({ _tag: Schema.Literal(tag), ...fields })

const Operation = strict({
  at: Millis,
  what: Schema.Union([
    what("Redrive", { queue: Name, limit: optionalKey(whole(1)), odd: Schema.Boolean }),
    what("Purge", { queue: Name, odd: Schema.Boolean }),
    what("List", { queue: Name }),
    what("Pause", { for: Millis }),
    what("Restart", { away: Millis }),
    what("Throttle", { for: Millis })
  ])
})

const File = strict({
  format: Schema.Literal(format),
  seed: whole(0),
  kind: Schema.Literals(Scenario.kinds),
  latency: between(0.1, longest),
  lease: Millis,
  versions: list(Version).check(Schema.isMinLength(1)),
  processes: list(Process).check(Schema.isMinLength(1)),
  sendings: list(Sending),
  refusals: list(Refusal),
  operations: list(Operation),
  rates: strict({
    cut: Part,
    lostAnswer: Part,
    lostRequest: Part,
    late: Part,
    twice: Part,
    busy: Part,
    echo: Part
  }),
  rabbitmq: optionalKey(
    strict({
      version: Schema.Literals(["3.10.8", "4.0.5", "4.3.6"]),
      queueType: Schema.Literals(["quorum", "classic"]),
      topology: Schema.Literals(["auto", "ladder", "levels", "perMessageTtl", "perDelayQueue", "waitLoop", "native"]),
      adopted: optionalKey(Schema.Literals(["quorum", "classic"])),
      deletedAt: optionalKey(Millis),
      frameMax: optionalKey(whole(4096)),
      policyTtl: optionalKey(Millis)
    })
  ),
  fifo: optionalKey(Schema.Literals(["block", "resend"])),
  focus: optionalKey(Schema.String),
  calmAt: Millis,
  only: optionalKey(list(Schema.String))
})

const decode = Schema.decodeUnknownResult(File)

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

const pathOf = (path: ReadonlyArray<unknown>): string =>
  path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? String(key) : `${text}.${String(key)}`),
    ""
  )

/** The first reference to a part that a scenario does not have, as a sentence. */
const dangling = (scenario: Scenario.Scenario): string | undefined => {
  const { kind, lease, processes, refusals, sendings, versions } = scenario
  if (Scenario.familyOf(scenario) !== "push" && lease < 1000)
    return `lease must be at least 1000 for the kind ${kind}, got ${lease}`
  const keys = new Set(sendings.map(({ key }) => key))
  const names = new Set(processes.map(({ name }) => name))
  if (keys.size < sendings.length) return "sendings: each key must be unique"
  if (names.size < processes.length) return "processes: each name must be unique"
  const stranger = refusals.findIndex(({ key }) => !keys.has(key))
  if (stranger >= 0) return `refusals[${stranger}].key must be that of a sending, got ${refusals[stranger]!.key}`
  for (const [index, process] of processes.entries()) {
    const nth = process.versions.findIndex((version) => version >= versions.length)
    if (nth >= 0) {
      const wanted = `an index of versions, which has ${versions.length}`
      return `processes[${index}].versions[${nth}] must be ${wanted}, got ${process.versions[nth]}`
    }
  }
  return undefined
}

/**
 * Reads a scenario.
 *
 * @throws RangeError for invalid JSON, another format, or a wrong name or value, with the path of the first error
 */
export const read = (text: string): Scenario.Scenario => {
  const refuse = (problem: string) => new RangeError(`scenario: ${problem}`)
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw refuse(`it must be JSON: ${String(error)}`)
  }
  const decoded = decode(json, { onExcessProperty: "error" })
  if (Result.isFailure(decoded)) {
    const { message, path = [] } = issuesOf(decoded.failure.issue).issues[0]!
    throw refuse(`${pathOf(path)}: ${message}`)
  }
  const { format: _, ...read } = decoded.success
  const scenario = read as Scenario.Scenario // JSON has no `undefined`: such fields are missing
  const problem = dangling(scenario)
  if (problem !== undefined) throw refuse(problem)
  return scenario
}

/** Writes a scenario, with the version of the format. */
export const write = (scenario: Scenario.Scenario): string => JSON.stringify({ format, ...scenario })
