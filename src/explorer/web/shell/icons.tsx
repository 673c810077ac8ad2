import type { ComponentChildren } from 'preact'

/** Icons of 16 × 16, in the colour of the text beside them. They only repeat what the text says. */
function Icon({ children, name }: { readonly children: ComponentChildren; readonly name: string }) {
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
      {children}
    </svg>
  )
}

const shapes = {
  folder: <path d="M1.7 4.2c0-.6.4-1 1-1h3.5l1.5 1.6h5.6c.6 0 1 .4 1 1v6c0 .6-.4 1-1 1H2.7c-.6 0-1-.4-1-1z" />,
  mount: (
    <>
      <rect x="1.8" y="2.6" width="12.4" height="4.8" rx="1" />
      <rect x="1.8" y="8.6" width="12.4" height="4.8" rx="1" />
      <path d="M6.5 5h3M6.5 11h3" />
    </>
  ),
  file: <path d="M3.5 1.8h5.6l3.4 3.4v9H3.5zM9 1.8v3.5h3.5" />,
  text: <path d="M3.5 1.8h5.6l3.4 3.4v9H3.5zM9 1.8v3.5h3.5M5.6 8h4.8M5.6 10.3h4.8" />,
  code: <path d="M5.4 4.6 2 8l3.4 3.4M10.6 4.6 14 8l-3.4 3.4" />,
  data: (
    <path d="M6 2.5c-1.6 0-2 .6-2 1.9v1.4C4 7 3.4 8 2.3 8 3.4 8 4 9 4 10.2v1.4c0 1.3.4 1.9 2 1.9M10 2.5c1.6 0 2 .6 2 1.9v1.4C12 7 12.6 8 13.7 8 12.6 8 12 9 12 10.2v1.4c0 1.3-.4 1.9-2 1.9" />
  ),
  table: <path d="M2 3.2h12v9.6H2zM2 6.4h12M2 9.6h12M6.2 3.2v9.6" />,
  image: (
    <>
      <rect x="1.8" y="2.8" width="12.4" height="10.4" rx="1" />
      <circle cx="5.4" cy="6.2" r="1.2" />
      <path d="m2.4 12 3.6-3.4 2.4 2 2.6-3 3 3.2" />
    </>
  ),
  chart: <path d="M2.2 2.4v11.4h11.6M4.8 10.6l2.6-3.4 2.2 1.8 3.4-4.6" />,
  search: (
    <>
      <circle cx="6.8" cy="6.8" r="4.3" />
      <path d="m10 10 4 4" />
    </>
  ),
  basket: <path d="M1.8 6.2h12.4l-1.3 7.2H3.1zM5 6.2 6.8 2.4M11 6.2 9.2 2.4" />,
  gear: (
    <>
      <path d="M2 4.6h6.4M12 4.6h2M2 11.4h2M8 11.4h6" />
      <circle cx="10.2" cy="4.6" r="1.7" />
      <circle cx="5.8" cy="11.4" r="1.7" />
    </>
  ),
  back: <path d="M10 3 5 8l5 5" />,
  close: <path d="m4 4 8 8M12 4l-8 8" />,
  right: <path d="m6 4 4 4-4 4" />,
  down: <path d="m4 6 4 4 4-4" />,
  up: <path d="m4 10 4-4 4 4" />,
  tick: <path d="m3.2 8.4 3.2 3.2 6.4-7" />,
  tree: <path d="M2.4 3h5M5 3v9.6M5 7.6h3M5 12.6h3M10 7.6h3.6M10 12.6h3.6" />,
  history: (
    <>
      <circle cx="8" cy="8.4" r="5.6" />
      <path d="M8 5v3.6l2.4 1.6" />
    </>
  ),
  key: (
    <>
      <circle cx="5" cy="8" r="2.8" />
      <path d="M7.8 8H14v2.6M11.4 8v2" />
    </>
  ),
  database: (
    <>
      <ellipse cx="8" cy="3.8" rx="5.2" ry="1.9" />
      <path d="M2.8 3.8v8.4c0 1 2.3 1.9 5.2 1.9s5.2-.9 5.2-1.9V3.8M2.8 8c0 1 2.3 1.9 5.2 1.9s5.2-.9 5.2-1.9" />
    </>
  ),
  globe: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M2 8h12M8 2c2 1.7 2.8 3.7 2.8 6S10 12.3 8 14c-2-1.7-2.8-3.7-2.8-6S6 3.7 8 2z" />
    </>
  ),
  box: <path d="M8 1.8 2.4 4.6v6.8L8 14.2l5.6-2.8V4.6zM2.4 4.6 8 7.4l5.6-2.8M8 7.4v6.8" />,
  dash: <path d="M3.6 8h8.8" />,
  plus: <path d="M8 3.2v9.6M3.2 8h9.6" />,
  home: <path d="M2.2 7.6 8 2.6l5.8 5M3.8 6.6v6.8h8.4V6.6M6.6 13.4V9.6h2.8v3.8" />,
  expand: <path d="M9.4 2.4h4.2v4.2M13.6 2.4 9 7M6.6 13.6H2.4V9.4M2.4 13.6 7 9" />,
  filter: <path d="M2 3h12L9.4 8.4v4.8l-2.8-1.6V8.4z" />,
  warn: <path d="M8 2 1.8 13.2h12.4zM8 6.4v3.2M8 11.4v.2" />,
} as const

export type IconName = keyof typeof shapes

export function Shape({ name }: { readonly name: IconName }) {
  return <Icon name={name}>{shapes[name]}</Icon>
}

const dataTypes = /[/+](?:json|xml|yaml|x-yaml|toml|x-ndjson|ld\+json|jsonl)\b/
const codeTypes =
  /javascript|typescript|x-(?:python|c|sh|ruby|rust|go|java|sql|perl|php|csrc|c\+\+)|ecmascript|text\/css|\/sql/

/** Returns the icon of a content type. */
export function iconOf(mimeType: string | undefined): IconName {
  if (mimeType === undefined) return 'file'
  if (mimeType === 'inode/directory') return 'folder'
  if (mimeType.startsWith('image/')) return 'image'
  if (/csv|tab-separated|spreadsheet|parquet|sqlite/.test(mimeType)) return 'table'
  if (/format=hikidashi\.Series|openmetrics/i.test(mimeType)) return 'chart'
  if (codeTypes.test(mimeType)) return 'code'
  if (dataTypes.test(mimeType)) return 'data'
  return mimeType.startsWith('text/') || mimeType === 'application/pdf' ? 'text' : 'file'
}
