/** One panel of a chart: a bar for each server that has the measure. */
export interface Panel {
  readonly title: string
  /** Text below the title, which says whether a longer bar is better. */
  readonly note: string
  readonly bars: readonly { readonly name: string; readonly value: number; readonly text: string }[]
}

const [panelWidth, barHeight, labelWidth, gap] = [460, 20, 160, 28]
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** Draws panels in two columns, as SVG. The bars of hikidashi have their own colour. */
export function drawChart(panels: readonly Panel[]): string {
  const heightOf = ({ bars }: Panel) => 46 + bars.length * barHeight + gap
  const columns: [number, number] = [10, 10]
  const drawn = panels.map((panel) => {
    const column = columns[0] <= columns[1] ? 0 : 1
    const [x, y] = [10 + column * (panelWidth + gap), columns[column]]
    columns[column] += heightOf(panel)
    return drawPanel(panel, x, y)
  })
  const [width, height] = [20 + 2 * panelWidth + gap, Math.max(...columns)]
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">
<title>Resources of nine servers, measured side by side</title>
<rect width="100%" height="100%" fill="#ffffff"/>
${drawn.join('\n')}
</svg>
`
}

function drawPanel({ title, note, bars }: Panel, x: number, y: number): string {
  const most = Math.max(...bars.map(({ value }) => value))
  const room = panelWidth - labelWidth - 60
  const lines = bars.map(({ name, value, text }, at) => {
    const top = y + 46 + at * barHeight
    const width = Math.max(1, (value / most) * room)
    const fill = name.startsWith('hikidashi') ? '#0b5fa5' : '#b4bcc6'
    return `<text x="${x + labelWidth - 8}" y="${top + 13}" text-anchor="end" fill="#333333">${escaped(name)}</text>
<rect x="${x + labelWidth}" y="${top + 2}" width="${width.toFixed(1)}" height="${barHeight - 5}" rx="2" fill="${fill}"/>
<text x="${(x + labelWidth + width + 6).toFixed(1)}" y="${top + 13}" fill="#333333">${escaped(text)}</text>`
  })
  return `<text x="${x}" y="${y + 16}" font-size="14" font-weight="600" fill="#111111">${escaped(title)}</text>
<text x="${x}" y="${y + 33}" fill="#666666">${escaped(note)}</text>
${lines.join('\n')}`
}
