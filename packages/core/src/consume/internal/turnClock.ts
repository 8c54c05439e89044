/** A clock that is read once in a turn of the event loop, however many messages arrive in that turn. */
export const make = (read: () => number): (() => number) => {
  let seen: number | undefined
  const forget = (): void => {
    seen = undefined
  }
  return () => {
    if (seen === undefined) {
      seen = read()
      queueMicrotask(forget)
    }
    return seen
  }
}
