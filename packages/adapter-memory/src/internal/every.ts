/** Returns a function that returns true at every `n`th call; with 0, at none. */
export const every = (n: number): (() => boolean) => {
  let calls = 0
  return () => n > 0 && ++calls % n === 0
}
