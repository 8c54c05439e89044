/** Makes a function that answers true every `n`th time it is called, and never when `n` is 0. */
export const every = (n: number): (() => boolean) => {
  let calls = 0
  return () => n > 0 && ++calls % n === 0
}
