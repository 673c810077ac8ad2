const circle = (x: number, y: number, r: number) =>
  `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`

const box = (x: number, y: number, width: number, height: number) => {
  const [across, down] = [width - 2, height - 2]
  const above = `M${x + 1} ${y}h${across}a1 1 0 0 1 1 1v${down}`
  return `${above}a1 1 0 0 1-1 1h${-across}a1 1 0 0 1-1-1v${-down}a1 1 0 0 1 1-1z`
}

const page = 'M3.5 1.8h5.6l3.4 3.4v9H3.5zM9 1.8v3.5h3.5'
const brace = 'M6 2.5c-1.6 0-2 .6-2 1.9v1.4C4 7 3.4 8 2.3 8 3.4 8 4 9 4 10.2v1.4c0 1.3.4 1.9 2 1.9'
const lid = 'M2.8 3.8a5.2 1.9 0 1 0 10.4 0a5.2 1.9 0 1 0-10.4 0'

const shapes = {
  folder: 'M1.7 4.2c0-.6.4-1 1-1h3.5l1.5 1.6h5.6c.6 0 1 .4 1 1v6c0 .6-.4 1-1 1H2.7c-.6 0-1-.4-1-1z',
  mount: `${box(1.8, 2.6, 12.4, 4.8)}${box(1.8, 8.6, 12.4, 4.8)}M6.5 5h3M6.5 11h3`,
  file: page,
  text: `${page}M5.6 8h4.8M5.6 10.3h4.8`,
  document: `${page}M5.6 7.6h4.8v4.2H5.6z`,
  notebook: `${box(2.6, 1.8, 10.8, 12.4)}M5.4 1.8v12.4M7.8 5h3M7.8 7.6h3`,
  markdown: 'M1.8 3.8h12.4v8.4H1.8zM4 10V6l2 2.2L8 6v4M11 6v4M9.6 8.6 11 10l1.4-1.4',
  code: 'M5.4 4.6 2 8l3.4 3.4M10.6 4.6 14 8l-3.4 3.4',
  data: `${brace}M10 2.5c1.6 0 2 .6 2 1.9v1.4C12 7 12.6 8 13.7 8 12.6 8 12 9 12 10.2v1.4c0 1.3-.4 1.9-2 1.9`,
  beside: `${box(1.8, 2.8, 12.4, 10.4)}M8 2.8v10.4`,
  table: 'M2 3.2h12v9.6H2zM2 6.4h12M2 9.6h12M6.2 3.2v9.6',
  sound: `M6 12V3.4l7-1.6v8.6${circle(4.2, 12, 1.8)}${circle(11.2, 10.4, 1.8)}`,
  image: `${box(1.8, 2.8, 12.4, 10.4)}${circle(5.4, 6.2, 1.2)}M2.4 12l3.6-3.4 2.4 2 2.6-3 3 3.2`,
  chart: 'M2.2 2.4v11.4h11.6M4.8 10.6l2.6-3.4 2.2 1.8 3.4-4.6',
  search: `${circle(6.8, 6.8, 4.3)}M10 10l4 4`,
  basket: 'M1.8 6.2h12.4l-1.3 7.2H3.1zM5 6.2 6.8 2.4M11 6.2 9.2 2.4',
  gear: `M2 4.6h6.4M12 4.6h2M2 11.4h2M8 11.4h6${circle(10.2, 4.6, 1.7)}${circle(5.8, 11.4, 1.7)}`,
  back: 'M10 3 5 8l5 5',
  close: 'm4 4 8 8M12 4l-8 8',
  right: 'm6 4 4 4-4 4',
  down: 'm4 6 4 4 4-4',
  up: 'm4 10 4-4 4 4',
  tick: 'm3.2 8.4 3.2 3.2 6.4-7',
  tree: 'M2.4 3h5M5 3v9.6M5 7.6h3M5 12.6h3M10 7.6h3.6M10 12.6h3.6',
  history: `${circle(8, 8.4, 5.6)}M8 5v3.6l2.4 1.6`,
  key: `${circle(5, 8, 2.8)}M7.8 8H14v2.6M11.4 8v2`,
  database: `${lid}v8.4c0 1 2.3 1.9 5.2 1.9s5.2-.9 5.2-1.9V3.8M2.8 8c0 1 2.3 1.9 5.2 1.9s5.2-.9 5.2-1.9`,
  globe: `${circle(8, 8, 6)}M2 8h12M8 2c2 1.7 2.8 3.7 2.8 6S10 12.3 8 14c-2-1.7-2.8-3.7-2.8-6S6 3.7 8 2z`,
  box: 'M8 1.8 2.4 4.6v6.8L8 14.2l5.6-2.8V4.6zM2.4 4.6 8 7.4l5.6-2.8M8 7.4v6.8',
  dash: 'M3.6 8h8.8',
  expand: 'M9.4 2.4h4.2v4.2M13.6 2.4 9 7M6.6 13.6H2.4V9.4M2.4 13.6 7 9',
  filter: 'M2 3h12L9.4 8.4v4.8l-2.8-1.6V8.4z',
  warn: 'M8 2 1.8 13.2h12.4zM8 6.4v3.2M8 11.4v.2',
} as const

export type IconName = keyof typeof shapes

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg
      class={`icon icon-${name}`}
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.3"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={shapes[name]} />
    </svg>
  )
}

const dataTypes = /[/+](?:json|xml|yaml|x-yaml|toml|x-ndjson|ld\+json|jsonl)\b/
const codeTypes =
  /javascript|typescript|x-(?:python|c|sh|ruby|rust|go|java|sql|perl|php|csrc|c\+\+)|ecmascript|text\/css|\/sql/

export function iconOf(mimeType: string | undefined): IconName {
  if (mimeType === undefined) return 'file'
  if (mimeType === 'inode/directory') return 'folder'
  if (mimeType.startsWith('image/')) return 'image'
  if (mimeType.startsWith('audio/')) return 'sound'
  if (/csv|tab-separated|spreadsheet|ms-excel|parquet|sqlite/.test(mimeType)) return 'table'
  if (/format=hikidashi\.Series|openmetrics/i.test(mimeType)) return 'chart'
  if (mimeType === 'application/x-ipynb+json') return 'notebook'
  if (codeTypes.test(mimeType)) return 'code'
  if (dataTypes.test(mimeType)) return 'data'
  if (/pdf|wordprocessing|presentation|opendocument\.text|msword|powerpoint|rtf/.test(mimeType)) return 'document'
  if (mimeType === 'text/markdown') return 'markdown'
  return mimeType.startsWith('text/') || mimeType === 'application/pdf' ? 'text' : 'file'
}

/** The mark of hikidashi: a chest whose middle drawer is open. Its colours are those of `icon.svg`. */
export function Mark({ size }: { readonly size: number }) {
  return (
    <svg viewBox="0 0 32 32" width={size} height={size} aria-hidden="true" focusable="false">
      <rect x="4" y="2" width="24" height="28" rx="2.5" fill="#0b6660" />
      <rect x="2" y="11" width="28" height="10" rx="1.5" fill="#6fd3c4" />
      <path d="M12.5 6.6h7M12.5 25.8h7" stroke="#fff" stroke-width="2.2" stroke-linecap="round" />
      <path d="M11 16.2h10" stroke="#04211e" stroke-width="2.6" stroke-linecap="round" />
    </svg>
  )
}
