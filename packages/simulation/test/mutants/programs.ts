/** Mutants of the parts of the core that serve programs of other shapes: pulls, limits, budgets, pauses and groups. */
import type { Mutant } from "./Mutant.ts"

const consume = (file: string): string => `core/src/consume/internal/${file}.ts`
const policy = (file: string): string => `core/src/policy/${file}.ts`

export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a rate limit forgets its runs early",
    file: policy("RateLimitState"),
    from: "first.at + per <= now) {",
    to: "first.at + per * 0.9 <= now) {"
  },
  {
    name: "what a batch has reserved of a rate limit is never used up",
    file: consume("limiter"),
    from: "if (task.reruns === 0 && reserved > 0) reserved--",
    to: ""
  },
  {
    name: "messages stay with a program that no longer pulls",
    file: "core/src/consume/Puller.ts",
    from: "if (pulls.size() === 0) engine.giveBack()",
    to: ""
  },
  {
    name: "a pulled batch that is released is acked",
    file: consume("pulls"),
    from: 'release: () => end("caller", { _tag: "Interrupted" })',
    to: 'release: () => end("caller", { _tag: "Succeeded" })'
  },
  {
    name: "a pull ends before its time",
    file: consume("pulls"),
    from: "let timer = timers.after(millis, onTimeout)",
    to: "let timer = timers.after(millis * 0.9, onTimeout)"
  },
  {
    name: "the end of a pause wakes nothing",
    file: consume("flow"),
    from: "    isPaused = held\n    dependencies.onChange()",
    to: "    isPaused = held\n    if (held) dependencies.onChange()"
  },
  {
    name: "messages of a group are kept when an earlier one is returned",
    file: consume("groups"),
    from: "if (isBack && !group.following.has(item)) this.#giveBack(this.#cut(group, item))\n    else group.out.delete(item)",
    to: "group.out.delete(item)"
  },
  {
    name: "a message joins its group while a batch has that",
    file: consume("groups"),
    from: "return !single && !isAlone && !isClosed && [...out]",
    to: "return !single && !isAlone && [...out]"
  },
  {
    name: "a message joins a batch behind one that is returned unseen",
    file: consume("groups"),
    from: ": !this.#dependencies.keepsPlace(settlement)",
    to: ": true",
    was: "A retry that was not due, or whose body could not be decoded in time, was overtaken by later messages of its group."
  },
  {
    name: "a dead letter costs nothing",
    file: policy("Decider"),
    from: "left = Math.max(0, left - 1)",
    to: ""
  },
  {
    name: "a success earns nothing",
    file: policy("Decider"),
    from: "left = Math.min(budget.max, left + budget.perSuccess)",
    to: "left = Math.min(budget.max, left)"
  }
]
