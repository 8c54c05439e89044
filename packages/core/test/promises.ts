/** Promises that are no `Promise` of this realm. */
import { runInNewContext } from "node:vm"

export type Make = (settle: Promise<unknown>) => PromiseLike<unknown>

class OfLibrary implements PromiseLike<unknown> {
  readonly #settle: Promise<unknown>
  constructor(settle: Promise<unknown>) {
    this.#settle = settle
  }
  // oxlint-disable-next-line unicorn/no-thenable
  then: PromiseLike<unknown>["then"] = (onFulfilled, onRejected) => this.#settle.then(onFulfilled, onRejected)
}

/** Each takes the outcome of a promise of ours. */
export const foreign: ReadonlyArray<readonly [name: string, make: Make]> = [
  ["of another realm", runInNewContext("(settle) => new Promise((resolve, reject) => settle.then(resolve, reject))")],
  ["of a library", (settle) => new OfLibrary(settle)],
  // oxlint-disable-next-line unicorn/no-thenable
  ["that is a function", (settle) => Object.assign(() => {}, { then: settle.then.bind(settle) })]
]
