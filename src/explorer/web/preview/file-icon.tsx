import { directoryMimeType } from '../../../core/view.ts'
import { Icon, iconOf } from '../shell/icons.tsx'
import { endingOf, languageOf, mediaTypeOf } from './model/kind.ts'

/** The letters and the colour of the badge of a language. White letters have a contrast of at least 4.5 : 1 on each colour (WCAG AA). */
const badges: Readonly<Record<string, readonly [letters: string, colour: string]>> = {
  typescript: ['TS', '#2f74c0'],
  javascript: ['JS', '#846700'],
  python: ['PY', '#3572a5'],
  go: ['GO', '#007a99'],
  rust: ['RS', '#a04526'],
  java: ['JV', '#a15c00'],
  kotlin: ['KT', '#7b46e0'],
  swift: ['SW', '#c9400f'],
  c: ['C', '#5c5f66'],
  cpp: ['C+', '#b5346a'],
  csharp: ['C#', '#167a16'],
  ruby: ['RB', '#b11d1d'],
  php: ['PH', '#4f5d95'],
  perl: ['PL', '#0d729c'],
  lua: ['LU', '#2a2a8f'],
  r: ['R', '#1b68b5'],
  scala: ['SC', '#b5273a'],
  elixir: ['EX', '#6e4a7e'],
  haskell: ['HS', '#5e5086'],
  bash: ['SH', '#3d7320'],
  powershell: ['PS', '#1f4f86'],
  dos: ['BT', '#5c5f66'],
  sql: ['SQ', '#a65200'],
  css: ['CS', '#663399'],
  scss: ['SC', '#b0437f'],
  less: ['LE', '#2b4f82'],
  xml: ['<>', '#b3440f'],
  yaml: ['YM', '#a8231f'],
  ini: ['IN', '#6b5b45'],
  properties: ['PR', '#6b5b45'],
  dockerfile: ['DK', '#2a6ea8'],
  makefile: ['MK', '#427819'],
  cmake: ['CM', '#9c2f3b'],
  graphql: ['GQ', '#b3117f'],
  protobuf: ['PB', '#3d6f8e'],
  nginx: ['NX', '#157a3c'],
  tex: ['TX', '#3d6117'],
}

/** Badges by file extension, for languages that highlighting does not tell apart. */
const badgesByEnding: Readonly<Record<string, readonly [string, string]>> = {
  ...{ toml: ['TO', '#8f4220'], vue: ['VU', '#27805a'], svelte: ['SV', '#c23a00'], env: ['EN', '#6b5b45'] },
}

const ownIcons = /^image\/|markdown|json|csv/

interface FileIconProps {
  readonly uri: string
  readonly mimeType: string | undefined
}

/** Returns the letters and the colour of the badge of a file. `undefined`: the file has no badge. */
export function badgeOf({ uri, mimeType }: FileIconProps): readonly [letters: string, colour: string] | undefined {
  const type = mediaTypeOf(mimeType)
  if (type === directoryMimeType || (type !== undefined && ownIcons.test(type))) return undefined
  return badgesByEnding[endingOf(uri)] ?? badges[languageOf(type, uri) ?? '']
}

export function FileIcon({ uri, mimeType }: FileIconProps) {
  const badge = badgeOf({ uri, mimeType })
  if (badge === undefined) return <Icon name={iconOf(mimeType)} />
  const [letters, colour] = badge
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <rect x="0.5" y="1.5" width="15" height="13" rx="3" fill={colour} />
      <text x="8" y="11.3" fill="#fff" font-size="8.6" font-weight="700" text-anchor="middle">
        {letters}
      </text>
    </svg>
  )
}
