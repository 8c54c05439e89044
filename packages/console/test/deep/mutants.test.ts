/** Consoles that are broken on purpose: each guard is taken away, and the attack that it is for must succeed then. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { files } from "../attacks/all.ts"
import type { Attack } from "../attacks/Attack.ts"

/** A guard that is missing. */
interface Mutant {
  /** The end of the attack's name. */
  readonly lets: string
  /** The end of the file's path. */
  readonly file: string
  /** A text that occurs once there. */
  readonly text: string
  readonly replacement: string
}

const mutants: ReadonlyArray<Mutant> = [
  {
    lets: "for clients that have gone",
    file: "routes/queue.ts",
    text: 'signal.addEventListener("abort", end)',
    replacement: ""
  },
  {
    lets: "in which nobody has chosen",
    file: "routes/delaying.ts",
    text: 'if (id === "") return Effect.fail',
    replacement: 'if (id === "" && place.queue === "") return Effect.fail'
  },
  {
    lets: "an object without a prototype",
    file: "src/Audit.ts",
    text: "Failure.summarize(error).message",
    replacement: "(error instanceof Error ? error.message : String(error))"
  },
  {
    lets: "done to that one",
    file: "work/letters.ts",
    text: "toSorted())}\\n`, body)",
    replacement: "toSorted())}\\n`)"
  },
  {
    lets: "done to that one",
    file: "work/letters.ts",
    text: "JSON.stringify(headers, Object.keys(headers).toSorted())",
    replacement: '""'
  },
  {
    lets: "says how many there are",
    file: "work/selection.ts",
    text: "letter === undefined ? undefined : 1",
    replacement: "undefined"
  },
  {
    lets: "says how many there are",
    file: "routes/acting.ts",
    text: "if (selection.letter !== undefined) return",
    replacement: "if (false) return"
  },
  {
    lets: "than one who looks",
    file: "work/overview.ts",
    text: "if (current !== undefined && (current.ended ?? now) > now - fresh) return current",
    replacement: ""
  },
  {
    lets: "gone without a word",
    file: "work/overview.ts",
    text: "now - seen < History.step * History.steps",
    replacement: "now >= seen"
  },
  {
    lets: "DNS rebinding",
    file: "guard/host.ts",
    text: "? isLoopback(host)",
    replacement: "? true"
  },
  {
    lets: "redrives nothing: a form",
    file: "guard/crossSite.ts",
    text: 'return site === "same-origin" &&',
    replacement: "return true ||"
  },
  {
    lets: "redrives nothing: an old browser",
    file: "guard/crossSite.ts",
    text: "if (site === null) return isOwnOrigin",
    replacement: "if (site === null) return true"
  },
  {
    lets: "a link is followed",
    file: "guard/crossSite.ts",
    text: 'return headers.get("sec-fetch-mode") === "navigate" &&',
    replacement: 'return headers.get("sec-fetch-mode") !== "" ||'
  },
  {
    lets: "that of another operator or process",
    file: "guard/gate.ts",
    text: "given !== null && token.matches(operator, given, now)",
    replacement: "given !== null"
  },
  {
    lets: "that of another operator or process",
    file: "guard/formToken.ts",
    text: "JSON.stringify([operator, made])",
    replacement: "made"
  },
  {
    lets: "that of another operator or process",
    file: "guard/formToken.ts",
    text: "randomBytes(32)",
    replacement: "Buffer.alloc(32, randomBytes(0))"
  },
  {
    lets: "a proxy's header says otherwise",
    file: "guard/gate.ts",
    text: "!(Host.isLoopbackAddress(address) &&",
    replacement: "!(address !== host &&"
  },
  {
    lets: "through a proxy here: via",
    file: "guard/gate.ts",
    text: "&& !ClientAddress.isForwarded(request.headers)",
    replacement: ""
  },
  {
    lets: "and by nobody else",
    file: "guard/clientAddress.ts",
    text: "while (isTrusted(client) &&",
    replacement: "while (client !== '' &&"
  },
  {
    lets: "and by nobody else",
    file: "guard/clientAddress.ts",
    text: "return networkOf(client)",
    replacement: "return client"
  },
  {
    lets: "whoever visits a page that sends it",
    file: "guard/gate.ts",
    text: "    // Before the limit",
    replacement: "    if (!all!.take(address, now)) return tooOften\n    // Before the limit"
  },
  {
    lets: "or without reading",
    file: "internal/handler.ts",
    text: "own.length >= mostStreams.each",
    replacement: "false"
  },
  {
    lets: "or without reading",
    file: "internal/handler.ts",
    text: "isHead ? Effect",
    replacement: "isHead && client === '' ? Effect"
  },
  {
    lets: "or without reading",
    file: "internal/responses.ts",
    text: "const lifetime = 60_000",
    replacement: "const lifetime = 6_000_000"
  },
  { lets: "looks like no other one", file: "internal/html.ts", text: "\\p{DI}", replacement: "" },
  { lets: "forget others", file: "guard/rateLimit.ts", text: "= 100_000", replacement: "= 1000" },
  { lets: "or with another time", file: "guard/formToken.ts", text: "12 * 3_600_000", replacement: "Infinity" },
  {
    lets: "or with another time",
    file: "guard/formToken.ts",
    text: "JSON.stringify([operator, made])",
    replacement: "operator"
  },
  {
    lets: "where its stream fails: EPIPE: nobody reads it",
    file: "src/Audit.ts",
    text: "error ? reject(error) : resolve()",
    replacement: "resolve()"
  },
  {
    lets: "while its stream takes nothing",
    file: "src/Audit.ts",
    text: "const timeout = 10_000",
    replacement: "const timeout = Infinity"
  },
  {
    lets: "glued to one that was torn",
    file: "src/Audit.ts",
    text: "last === undefined ||",
    replacement: "last !== '' ||"
  },
  {
    lets: "glued to one that was torn",
    file: "src/Audit.ts",
    text: "last.then(() => append(path, line))",
    replacement: "append(path, line)"
  },
  {
    lets: "with what was stopped",
    file: "routes/looking.ts",
    text: "options: { letter: id }",
    replacement: "options: {}"
  },
  {
    lets: "without it: bytes",
    file: "src/Redaction.ts",
    text: "if (value instanceof Uint8Array) return mark",
    replacement: "if (value instanceof Uint8Array) return value"
  },
  { lets: "without it: UTF-16", file: "work/body.ts", text: "bytes.includes(0)", replacement: "bytes.length === 0" },
  {
    lets: "wherever it stands in letters",
    file: "internal/shown.ts",
    text: "struck(redact(content, { broker, queue }), secrets)",
    replacement: "redact(content, { broker, queue })"
  },
  {
    lets: "nobody who may not see bodies",
    file: "internal/shown.ts",
    text: "mayBodies ? shown :",
    replacement: "mayBodies || shown !== '' ? shown :"
  },
  {
    lets: "hook answers nothing",
    file: "internal/shown.ts",
    text: "if (isContent(answer)) return answer",
    replacement: "if (answer !== null) return answer"
  },
  {
    lets: "and bytes as bytes",
    file: "internal/shown.ts",
    text: "id: shown.id ?? mark,",
    replacement: "id: shown.id ?? id,"
  },
  {
    lets: "are refused for a while",
    file: "guard/gate.ts",
    text: "if (hasCredentials) failures",
    replacement: "if (false) failures"
  },
  {
    lets: "view < bodies < redrive < purge",
    file: "src/Authorization.ts",
    text: "actions.indexOf(action) <= actions.indexOf(role)",
    replacement: "role !== action || role === action"
  },
  {
    lets: "which part is wrong",
    file: "src/Authorization.ts",
    text: "timingSafeEqual(each.digest, given)",
    replacement: "timingSafeEqual(given, given)"
  },
  {
    lets: "or answers nonsense",
    file: "guard/gate.ts",
    text: "isDecision(answer) ? answer : unknown",
    replacement: "isDecision(answer) ? answer : answer"
  },
  {
    lets: "whatever its length says",
    file: "guard/formBody.ts",
    text: "if (size > limit) return",
    replacement: "if (size > 100 * limit) return"
  },
  {
    lets: "and others are served",
    file: "guard/gate.ts",
    text: "all!.take(clientOf(address, request.headers), now)",
    replacement: `all!.take("", now)`
  },
  {
    lets: "lets nothing happen",
    file: "work/jobs.ts",
    text: "yield* Effect.onError(Audit.begin(audit, operation)",
    replacement: "yield* Effect.catchCause(Audit.begin(audit, operation)"
  },
  {
    lets: "whose first line is missing",
    file: "src/Audit.ts",
    text: "yield* begin(write, operation)",
    replacement: "yield* Effect.ignore(begin(write, operation))"
  },
  {
    lets: "whose last line is missing",
    file: "src/Audit.ts",
    text: "if (lost === undefined) return yield* exit",
    replacement: "if (lost !== null) return yield* exit"
  },
  {
    lets: "letter by letter",
    file: "routes/acting.ts",
    text: 'asking.fields.get("name") !== place.queue',
    replacement: '!asking.fields.has("name")'
  },
  { lets: "wherever it stands", file: "internal/html.ts", text: "escaped(String(part))", replacement: "String(part)" },
  {
    lets: "where it is no text",
    file: "pages/letter.ts",
    text: "body.text.slice(0, longest)",
    replacement: "body.text"
  },
  {
    lets: "where the redact hook fails",
    file: "work/body.ts",
    text: "try: () => redact(content, place)",
    replacement: "try: () => content"
  },
  {
    lets: "for dead letters of the configuration",
    file: "routes/route.ts",
    text: "return Park.hasLetters(connection, queue)",
    replacement: 'return queue !== ""'
  },
  {
    lets: "does nothing by GET",
    file: "internal/handler.ts",
    text: "found.find((each) => each.method === method)",
    replacement: "found[0]"
  },
  {
    lets: "go: /redrive",
    file: "work/redrive.ts",
    text: "audit: audit({ to: options.to }),",
    replacement: ""
  },
  {
    lets: "go: /purge",
    file: "work/purge.ts",
    text: ", audit: audit({ isRemoval: true })",
    replacement: ""
  },
  {
    lets: "go: /redrive",
    file: "src/Audit.ts",
    text: "if (lost !== undefined) throw new Error(lost)",
    replacement: ""
  },
  {
    lets: "each letter that has gone",
    file: "src/Audit.ts",
    text: "operation: id, command, operator, broker, queue",
    replacement: "operation: id, command, operator: broker, broker, queue"
  },
  {
    lets: "finds nothing out of what is hidden",
    file: "work/selection.ts",
    text: "if (!passes(told(letter))) return false",
    replacement: "if (passes(told(letter))) return true"
  },
  {
    lets: "finds nothing out of what is hidden",
    file: "work/selection.ts",
    text: "(each: LetterFilter.Subject) => each : patterned",
    replacement: "(each: LetterFilter.Subject) => each : (each: LetterFilter.Subject) => each"
  },
  {
    lets: "stands for no letters",
    file: "routes/filters.ts",
    text: 'if (typeof part === "string") {',
    replacement: 'if (typeof part === "string") continue\n    if (name === "") {'
  },
  {
    lets: "few wait",
    file: "work/looks.ts",
    text: ">= mostAtOnce",
    replacement: ">= 1000"
  },
  {
    lets: "and of no others",
    file: "routes/acting.ts",
    text: "Selection.isSame(job.selection, selection)",
    replacement: "true"
  },
  {
    lets: "that is not configured",
    file: "routes/acting.ts",
    text: "queues.some((queue) => queue.name === to)",
    replacement: "queues.length > 0"
  },
  {
    lets: "and may not see bodies",
    file: "routes/editing.ts",
    text: 'may.has("bodies")',
    replacement: 'may.has("view")'
  },
  {
    lets: "the hidden part is not lost",
    file: "work/drafts.ts",
    text: "if (!isLeft(body, shown.body))",
    replacement: "if (false)"
  },
  {
    lets: "to send or to see",
    file: "routes/editing.ts",
    text: "draft !== undefined && draft.operator === operator",
    replacement: "draft !== undefined"
  },
  {
    lets: "and nothing else",
    file: "routes/editing.ts",
    text: 'fields.get("copy") !== Drafts.nameOf(draft)',
    replacement: "false"
  },
  {
    lets: "and no larger one",
    file: "work/drafts.ts",
    text: "4 * most.body",
    replacement: "400 * most.body"
  },
  {
    lets: "park, edit or count",
    file: "routes/acting.ts",
    text: 'needs: "redrive",\n  answer: working((_, connection, { place: { queue }, selection }) =>\n    Effect.succeed(Park',
    replacement:
      'needs: "view",\n  answer: working((_, connection, { place: { queue }, selection }) =>\n    Effect.succeed(Park'
  },
  {
    lets: "and without secrets",
    file: "internal/shownWaiting.ts",
    text: "headers: shown.headers,\n    error",
    replacement: "headers,\n    error"
  },
  {
    lets: "below bodies to nobody",
    file: "internal/shownWaiting.ts",
    text: "shown.history?.[0], mayBodies)",
    replacement: "shown.history?.[0], mayBodies || id !== '')"
  },
  {
    lets: "where the redact hook throws",
    file: "internal/shownWaiting.ts",
    text: "const shown = Shown.left(redact, {",
    replacement: "const shown = Shown.left((content) => content, {"
  },
  {
    lets: "the role, the token and the name",
    file: "routes/delaying.ts",
    text: 'fields.get("name") !== queue.name',
    replacement: '!fields.has("name")'
  },
  {
    lets: "the role, the token and the name",
    file: "routes/delaying.ts",
    text: 'needs: "purge"',
    replacement: 'needs: "redrive"'
  },
  {
    lets: "queues of the configuration alone",
    file: "routes/delaying.ts",
    text: "(each) => each.name === name",
    replacement: "(each) => each.name !== ''"
  },
  {
    lets: "to nobody without a role",
    file: "routes/queue.ts",
    text: "connection.queues.find((each) => each.name === name)",
    replacement: "connection.queues.find((each) => each.name === name || name !== '') && connection.queues[0]"
  },
  {
    lets: "struck out of plans and findings",
    file: "work/comparison.ts",
    text: "...struck(told, mask)",
    replacement: "...told"
  },
  {
    lets: "numbers of an outage: are bounded",
    file: "routes/queue.ts",
    text: '"decimal", 0.01, 1440',
    replacement: '"decimal", 0.01, 1e12'
  },
  {
    lets: "numbers of an outage: are bounded",
    file: "work/outage.ts",
    text: "question, most.messages)",
    replacement: "question, 20 * 1440 * 60_000)"
  },
  {
    lets: "is cut, while others are served",
    file: "work/outage.ts",
    text: "yield* Effect.yieldNow",
    replacement: "yield* Effect.void"
  },
  {
    lets: "refused when too many wait",
    file: "work/outage.ts",
    text: "if (asked >= most.running + most.waiting) return",
    replacement: "if (asked < 0) return"
  },
  {
    lets: "in words, plots and diagrams",
    file: "internal/html.ts",
    text: "escaped(String(part))",
    replacement: "String(part)"
  },
  {
    lets: "without a token, or by a link",
    file: "routes/exporting.ts",
    text: 'needs: "bodies"',
    replacement: 'needs: "view"'
  },
  {
    lets: "has none of them: of the configuration",
    file: "work/redactedLine.ts",
    text: "isWhole(content, shown, body.json)",
    replacement: "(isWhole(content, shown, body.json) || shown !== undefined)"
  },
  {
    lets: "where a key stands twice",
    file: "work/redactedLine.ts",
    text: '(json === undefined || Json.isAlike(one ?? "", json))',
    replacement: "true"
  },
  {
    lets: "too large to be browsed through",
    file: "work/redactedLine.ts",
    text: "if (bytes.length > Body.limits.whole) return undefined",
    replacement: ""
  },
  {
    lets: "nobody takes it for the letter",
    file: "work/redactedLine.ts",
    text: "written, { isRedacted: true })",
    replacement: "written)"
  },
  {
    lets: "the audit has no line of its end",
    file: "work/export.ts",
    text: "trouble === undefined && exported?.stoppedBy === undefined ? close()",
    replacement: "exported !== undefined ? close()"
  },
  {
    lets: "the audit has no line of its end",
    file: "work/export.ts",
    text: "? close() : abort()",
    replacement: "? close() : close()"
  },
  {
    lets: "where nobody can say how it may be seen",
    file: "work/redactedLine.ts",
    text: "return bytesOf(shown.body) === undefined ? { headers: {} } : shown",
    replacement: "return shown.body === undefined ? content : shown"
  },
  {
    lets: "is quoted to nobody",
    file: "internal/shown.ts",
    text: "} catch {}",
    replacement: "} catch (error) {\n      throw error\n    }"
  },
  {
    lets: "is quoted to nobody",
    file: "internal/shown.ts",
    text: "if (isContent(answer)) return answer",
    replacement: "if (isContent(answer)) return redact(content, { broker, queue })"
  },
  ...["throws", "has a getter that throws", "answers a proxy that throws"].flatMap((how) => [
    {
      lets: `is hidden, where it ${how}`,
      file: "work/selection.ts",
      text: "} catch {",
      replacement: "} catch (error) {\n      throw error"
    },
    {
      lets: `is hidden, where it ${how}`,
      file: "internal/shown.ts",
      text: "  } catch {\n    return { headers: {} }",
      replacement: "  } catch (error) {\n    throw error"
    }
  ]),
  ...[
    { file: "work/export.ts", text: "yield* pause", replacement: "" },
    { file: "routes/reading.ts", text: "Effect.map(pause, () =>", replacement: "Effect.map(Effect.void, () =>" },
    { file: "routes/delaying.ts", text: "Effect.map(pause, () =>", replacement: "Effect.map(Effect.void, () =>" }
  ].map((mutant) => ({ ...mutant, lets: "stops nobody else in the process" })),
  {
    lets: "without a part: of letters",
    file: "internal/shown.ts",
    text: "error: origin?.error, history:",
    replacement: "error: origin && { ...origin.error, message: message(origin.error.message, false) }, history:"
  },
  {
    lets: "without a part: of letters",
    file: "internal/shown.ts",
    text: "history: history.map(({ error }) => error) }",
    replacement: "history: history.map(({ error }) => message(error, false)) }"
  },
  {
    lets: "without a part: of letters",
    file: "internal/shown.ts",
    text: "message: example } }",
    replacement: "message: message(example, false) } }"
  },
  {
    lets: "without a part: to whoever filters",
    file: "work/selection.ts",
    text: "shown(filter, letter, redact",
    replacement: "shown(filter, told(letter), redact"
  },
  {
    lets: "without a part: of messages in backoff",
    file: "internal/shownWaiting.ts",
    text: "? [] : [error] }",
    replacement: "? [] : [Shown.message(error, false)] }"
  },
  {
    lets: "without a part: of messages in backoff",
    file: "work/delayed.ts",
    text: "errorOf(message)?.slice(0, most.error)",
    replacement: "cause.pattern"
  },
  {
    lets: "without a part: of events",
    file: "internal/shownEvent.ts",
    text: "id, error, history: [words] }",
    replacement: "id, error: error && { ...error, message: Shown.message(error.message, false) }, history: [words] }"
  },
  {
    lets: "whatever the queue's is",
    file: "internal/responses.ts",
    text: 'filename="${safe(name)}"',
    replacement: 'filename="${encodeURI(name)}"'
  },
  {
    lets: "below bodies their patterns alone",
    file: "internal/shownEvent.ts",
    text: "shown.error?.message, mayBodies)",
    replacement: "shown.error?.message, mayBodies || id !== '')"
  },
  {
    lets: "as text, whoever it quotes",
    file: "internal/shownEvent.ts",
    text: "Shown.message(shown.error?.message,",
    replacement: "Shown.message(error.message,"
  },
  {
    lets: "shows nothing of it",
    file: "internal/shownEvent.ts",
    text: "return hidden(told)",
    replacement: "return told"
  },
  {
    lets: "pushes out what needs a person",
    file: "work/events.ts",
    text: "coming.isBad ? rings.bad : rings.others",
    replacement: "coming.isBad ? rings.others : rings.others"
  },
  {
    lets: "takes no memory",
    file: "work/events.ts",
    text: "if (kept.length > most.kept) kept.shift()",
    replacement: ""
  },
  {
    lets: "takes no memory",
    file: "work/events.ts",
    text: "if (into.takes(at)) put(",
    replacement: "if (into.takes(at) || at > 0) put("
  },
  {
    lets: "takes no memory",
    file: "work/events.ts",
    text: "error.message.slice(0, most.message)",
    replacement: "error.message"
  },
  {
    lets: "or be told of it",
    file: "guard/securityHeaders.ts",
    text: "frame-ancestors 'none'",
    replacement: "frame-ancestors *"
  },
  {
    lets: "and no other",
    file: "guard/crossSite.ts",
    text: "hostOf(origin) === host.toLowerCase()",
    replacement: "hostOf(origin) === undefined"
  }
]

/** The attack, from a copy of its file that runs on the mutant. */
const attackOn = async ({ lets, ...patch }: Mutant): Promise<Attack> => {
  const found = Object.entries(files).flatMap(([file, attacks]) =>
    attacks.flatMap(({ name }) => (name.endsWith(lets) ? [{ file, name }] : []))
  )
  assert.lengthOf(found, 1)
  const { file, name } = found[0]!
  const query = `patch=${encodeURIComponent(JSON.stringify(patch))}`
  const copy: { readonly attacks: ReadonlyArray<Attack> } = await import(
    /* @vite-ignore */ `../attacks/${file}.ts?${query}`
  )
  return copy.attacks.find((attack) => attack.name === name)!
}

describe("a guard that is missing is found by the attack", () => {
  it.effect.each(mutants)("$file: $lets", (mutant) =>
    Effect.gen(function* () {
      const { run } = yield* Effect.promise(() => attackOn(mutant))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(run)), "the attack does not find it")
    })
  )
})
