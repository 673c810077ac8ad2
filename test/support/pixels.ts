interface Canvas {
  readonly width: number
  readonly height: number
  getContext(
    kind: '2d',
  ): { getImageData(x: number, y: number, width: number, height: number): { data: ArrayLike<number> } } | null
}

/** Returns the number of `dark` or `warm` pixels of a canvas. It runs in the page. */
export function countPixels(element: object, kind: string): number {
  const canvas = element as Canvas
  const data = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? []
  let count = 0
  for (let at = 0; at < data.length; at += 4) {
    const [red = 0, green = 0, blue = 0, alpha = 0] = [data[at], data[at + 1], data[at + 2], data[at + 3]]
    const isOne = kind === 'dark' ? Math.max(red, green, blue) < 100 : red > blue + 80
    if (alpha > 200 && isOne) count++
  }
  return count
}
