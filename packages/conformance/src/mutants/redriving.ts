/** Redrives and groups that do, or report, something else. */
import type { Broker } from "@requeue/core"
import type { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { decorate } from "../internal/decorate.ts"
import type { Mutant } from "../Mutant.ts"

/** Changes the requests to the dead letters, or their answers. */
const letters = (
  name: string,
  kills: string,
  change: (letters: DeadLetters.DeadLetters) => Partial<DeadLetters.DeadLetters>
): Mutant => ({
  name,
  kills,
  subject: (subject) => ({
    ...subject,
    makeDeadLetters: (queue) =>
      Effect.map(subject.makeDeadLetters(queue), (original) => ({ ...original, ...change(original) }))
  })
})

/** Changes the request of a redrive, or its report. */
const redrives = (
  name: string,
  kills: string,
  change: (redrive: DeadLetters.DeadLetters["redrive"]) => DeadLetters.DeadLetters["redrive"]
): Mutant => letters(name, kills, ({ redrive }) => ({ redrive: change(redrive) }))

/** Groups by the error's name alone, as if one name were one cause. */
const byName = (groups: DeadLetters.Groups): DeadLetters.Groups => {
  const names = [...Map.groupBy(groups, ({ error }) => error).values()]
  const merged = names.map((members) => ({
    ...members[0]!,
    count: members.reduce((sum, { count }) => sum + count, 0)
  }))
  const { browsed, other, total } = groups
  return Object.assign(merged, { browsed, other, total })
}

const live = "a live queue is not taken for a dead-letter queue, unless its name confirms it"
const begun = "a live queue that begins with twelve dead letters is not taken for a dead-letter queue"

const shared =
  "a queue that was found for one queue and holds letters of two is refused, unless an origin or its name is given"

const stopped = "a redrive that fixes nothing stops automatically, and its figures are those of the broker"

const known = "a letter that comes back is recognised through its retries, and the same redrive continues without it"

const arriving =
  "letters that arrive during a redrive in stages are left for the next one, and no success is reported early"

const audited = "an audit is told of each letter before it is redriven or removed, and where it fails, the others stay"

/** An audit that never fails. */
const deaf =
  (audit: DeadLetters.Audit | undefined): DeadLetters.Audit =>
  async (letters) => {
    try {
      await audit?.(letters)
    } catch {
      // No report mentions it.
    }
  }

const edited = "an edited letter stays until its copy has succeeded, and differs from a copy that comes back"

const grouped = "letters are grouped by what failed, whatever differs in the errors' messages, and stay where they are"

/** Bodies after filters, by the ids of their letters. */
const written = new Map<string, Uint8Array>()

export const mutants: ReadonlyArray<Mutant> = [
  {
    ...letters(
      "publishes what a filter wrote into its letter",
      "what a filter or an audit writes into its letter changes no message",
      ({ park }) => ({
        park: (options) =>
          park({
            ...options,
            filter: (letter) => {
              const isMeant = options?.filter?.(letter) ?? true
              written.set(letter.id, letter.body)
              return isMeant
            }
          })
      })
    ),
    broker: (broker) => {
      written.clear()
      return decorate(broker, {
        publish: (messages, publish) =>
          publish(messages.map((each) => ({ ...each, body: written.get(each.metadata.id) ?? each.body })))
      })
    }
  },
  redrives(
    "a redrive that says that all is well",
    "a letter that cannot be redriven holds up no other, and none is redriven twice",
    (redrive) => (options) =>
      Effect.map(redrive(options), (report) => ({
        ...report,
        redriven: report.redriven + report.refused,
        refused: 0,
        failures: []
      }))
  ),
  redrives(
    "a redrive that passes over what another reader has",
    "a redrive reports the letters of another reader, and another redrive takes them",
    (redrive) => (options) => Effect.map(redrive(options), (report) => ({ ...report, held: 0 }))
  ),
  redrives(
    "a redrive that does not say what another reader takes from it",
    "a redrive from which another reader takes letters says what that one has, and another redrive takes them",
    (redrive) => (options) => Effect.map(redrive(options), (report) => ({ ...report, held: 0 }))
  ),
  redrives(
    "a redrive that hears no abort",
    "a redrive that is aborted ends at once, and another one goes on with the others",
    (redrive) => (options) => redrive({ ...options, signal: undefined })
  ),
  redrives(
    "a redrive that goes on whatever comes back",
    stopped,
    (redrive) => (options) => redrive({ ...options, stopAt: 1 })
  ),
  redrives(
    "a redrive that takes what it published for done",
    stopped,
    (redrive) => (options) => Effect.map(redrive(options), (report) => ({ ...report, succeeded: report.published }))
  ),
  redrives(
    "a redrive that takes what waits for its retry for done",
    "a letter that waits for its retry has not succeeded, and another one that was acked has",
    (redrive) => (options) =>
      Effect.map(redrive(options), (report) => ({ ...report, succeeded: report.published, waiting: 0 }))
  ),
  redrives(
    "a redrive in stages that hears no abort",
    "a redrive that is aborted while it waits says where every letter is",
    (redrive) => (options) => redrive({ ...options, signal: undefined })
  ),
  redrives(
    "a redrive that takes what arrives meanwhile",
    arriving,
    (redrive) => (options) =>
      Effect.flatMap(redrive(options), (report) =>
        Effect.map(redrive({ operation: report.operation }), ({ published }) => ({
          ...report,
          published: report.published + published,
          queued: (report.queued ?? 0) - published
        }))
      )
  ),
  redrives(
    "a redrive that tells success when it publishes",
    arriving,
    (redrive) => (options) =>
      redrive({
        ...options,
        onProgress: (report) => options?.onProgress?.({ ...report, succeeded: report.published })
      })
  ),
  redrives(
    "a redrive that makes the queue that it redrives to",
    "letters go to no queue that is missing, unless it may be made",
    (redrive) => (options) => redrive({ ...options, create: true })
  ),
  redrives(
    "a redrive that makes the queue that a letter names",
    "a queue that only a letter names is not made by a redrive, nor by its dry run",
    (redrive) => (options) => redrive({ create: true, ...options })
  ),
  letters(
    "a redrive that believes each letter where it came from",
    "no letter goes to a queue because the letter names it",
    ({ list, redrive }) => ({
      redrive: (options) => Effect.flatMap(list(), ([letter]) => redrive({ origin: letter?.origin?.queue, ...options }))
    })
  ),
  redrives(
    "a redrive that is another one each time",
    known,
    (redrive) => (options) => redrive({ ...options, operation: undefined })
  ),
  redrives(
    "a redrive that goes on without its audit",
    audited,
    (redrive) => (options) => redrive({ ...options, audit: deaf(options?.audit) })
  ),
  letters("a purge that tells its audit when all is gone", audited, ({ list, purge }) => ({
    purge: ({ audit, ...options }) =>
      Effect.gen(function* () {
        const all = yield* list()
        const removed = yield* purge(options)
        yield* Effect.promise(async () => audit?.(all))
        return removed
      })
  })),
  letters(
    "a park that is a redrive",
    "parked letters are aside as they were, and come back to the others or to work",
    ({ redrive }) => ({ park: (options) => redrive(options) })
  ),
  letters("an edit that removes the original at once", edited, ({ edit, purge }) => ({
    edit: (letter, options) =>
      Effect.flatMap(edit(letter, options), (report) =>
        Effect.as(Effect.orDie(purge({ filter: ({ metadata }) => metadata.id === letter.id })), report)
      )
  })),
  letters("an edit that publishes the letter as it was", edited, ({ edit }) => ({
    edit: (letter, options) => edit(letter, { ...options, body: letter.body })
  })),
  letters("groups dead letters by their errors' names", grouped, ({ group }) => ({
    group: (options) => Effect.map(group(options), byName)
  })),
  letters("does not say of how many letters it tells", grouped, ({ group }) => ({
    group: (options) => Effect.map(group(options), (groups) => Object.assign(groups, { browsed: 0 }))
  })),
  letters("takes any queue for a dead-letter queue", live, ({ edit, park, purge, queue: force, redrive }) => ({
    edit: (letter, options) => edit(letter, { ...options, force }),
    park: (options) => park({ ...options, force }),
    purge: (options) => purge({ ...options, force }),
    redrive: (options) => redrive({ ...options, force })
  })),
  letters("looks at the first ten messages alone", begun, ({ list, purge, queue: force }) => ({
    purge: (given) =>
      Effect.flatMap(list({ limit: 10 }), (first) =>
        purge(first.every(({ origin }) => origin !== undefined) ? { ...given, force } : given)
      )
  })),
  {
    name: "takes the letters of all queues for those of one",
    kills: shared,
    subject: (subject) => ({ ...subject, findDeadLetters: (queue) => subject.makeDeadLetters(queue) })
  },
  letters("purges all of a live queue", live, ({ purge, queue: force }) => ({
    purge: (options) => purge(options.all === true ? { ...options, force } : options)
  })),
  letters(
    "counts 0 letters where there is no queue",
    "dead letters of a queue that is missing are an error",
    (all) => ({
      count: Effect.orElseSucceed(all.count, () => 0)
    })
  ),
  letters(
    "knows dead-letter queues by their names alone",
    "the letters themselves make any queue a dead-letter queue",
    ({ purge, queue }) => ({
      purge: (options) => (queue.endsWith(".dlq") ? purge(options) : Effect.succeed(0))
    })
  ),
  {
    name: "keeps what is given back from others for a while",
    kills: "what a purge or a redrive has passed over is there again at its end",
    broker: (broker) => {
      const { browse } = broker.admin
      const held = (options: Broker.BrowseOptions) =>
        Effect.flatMap(browse(options), ({ next }) => Effect.andThen(next(options.limit), Effect.sleep("20 seconds")))
      const keeping: typeof browse = (options) =>
        Effect.andThen(
          Effect.addFinalizer(() => Effect.forkDetach(Effect.scoped(held(options)), { startImmediately: true })),
          browse(options)
        )
      return { ...broker, admin: { ...broker.admin, browse: keeping } }
    }
  },
  {
    name: "removes no letter of a queue whose connection was lost once",
    kills: "a redrive whose connections break decides on each letter once, loses none, and its report balances",
    broker: (broker) => {
      let isLost = false
      const browse: Broker.Admin["browse"] = (options) =>
        Effect.map(broker.admin.browse(options), (browser) => ({
          ...browser,
          next: (count) => Effect.tapError(browser.next(count), () => Effect.sync(() => (isLost = true))),
          remove: (deliveries) => (isLost ? Effect.succeed([]) : browser.remove(deliveries))
        }))
      return { ...broker, admin: { ...broker.admin, browse } }
    }
  }
]
