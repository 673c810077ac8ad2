import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const web = join(import.meta.dirname, '../../src/explorer/web')
const tokens = 'style/theme.css'

interface Declaration {
  /** The file with its line, for the message of a failure. */
  readonly place: string
  readonly property: string
  readonly value: string
}

/** Returns the declarations of a style sheet, without its comments. */
function declarationsIn(file: string, text: string): readonly Declaration[] {
  const css = text.replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ' '))
  return [...css.matchAll(/([\w-]+)\s*:\s*([^;{}]+);/g)].map(({ index, 1: property = '', 2: value = '' }) => ({
    place: `${file}:${css.slice(0, index).split('\n').length}`,
    property,
    value: value.replace(/\s+/g, ' '),
  }))
}

const files = readdirSync(web, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.css'))
const all = files.flatMap((file) => declarationsIn(file, readFileSync(join(web, file), 'utf8')))
const elsewhere = all.filter(({ place }) => !place.startsWith(tokens))

const told = (found: readonly Declaration[]) =>
  found.map(({ place, property, value }) => `${place}: ${property}: ${value}`)

/** Pixels of the grid on which everything stands. */
const gridPx = 4
/** Properties with distances and sizes. Lines, outlines and offsets of shadows are no spacing. */
const spaced =
  /^(?:padding|margin|inset|scroll-margin|gap|row-gap|column-gap|top|left|right|bottom|(?:min-|max-)?(?:width|height)|flex|flex-basis|grid-template|grid-template-columns|--[\w-]+)\b/

/** The lengths of a value in pixels. One that follows the size of its text (`em`, `ch`) or of the window is on no grid. */
function pixelsIn(value: string): readonly number[] {
  return [...value.matchAll(/(-?[\d.]+)(px|rem)\b/g)].map(
    ([, number, unit]) => Number(number) * (unit === 'rem' ? 16 : 1),
  )
}

/** Whether a length is off the grid. One pixel is a line, or what overlaps one. */
const isOff = (pixels: number) => Math.abs(pixels) !== 1 && pixels % gridPx !== 0

describe('in the styles of the explorer,', () => {
  test('a distance that is not a multiple of 4 pixels is found by the check', () => {
    const css = '.a { padding: 4px 6px; } .b { margin: 0 0.3rem; } .c { gap: 8px; top: -1px; border-width: 3px; }'
    const off = declarationsIn('a.css', css).filter(({ value }) => pixelsIn(value).some(isOff))
    expect(off.map(({ property }) => property)).toEqual(['padding', 'margin', 'border-width'])
    expect(off.filter(({ property }) => spaced.test(property)).length).toBe(2)
    expect(files.length).toBeGreaterThan(20)
  })

  test('every distance and size is one pixel or a multiple of 4 pixels', () => {
    expect(
      told(elsewhere.filter(({ property, value }) => spaced.test(property) && pixelsIn(value).some(isOff))),
    ).toEqual([])
    const sizes = all.filter(
      ({ place, property }) => place.startsWith(tokens) && /^--(?:row|target|gap)/.test(property),
    )
    expect(sizes.length).toBeGreaterThan(4)
    expect(told(sizes.filter(({ value }) => pixelsIn(value).some(isOff)))).toEqual([])
  })

  test('colours, type sizes and corners come from variables', () => {
    const colours = elsewhere.filter(({ value }) => /#[\da-f]{3,8}\b|\b(?:rgb|hsl|oklch|light-dark)\(/i.test(value))
    expect(told(colours)).toEqual([])
    // A size in `em` follows that of the text around it.
    const type = elsewhere.filter(
      ({ property, value }) => /^font(?:-size)?$/.test(property) && /\d(?:px|rem)\b/.test(value.replace(/\/.*/, '')),
    )
    expect(told(type)).toEqual([])
    const corners = elsewhere.filter(
      ({ property, value }) => /radius$/.test(property) && /[1-9]\d*(?:px|rem)\b/.test(value),
    )
    expect(told(corners)).toEqual([])
  })
})
