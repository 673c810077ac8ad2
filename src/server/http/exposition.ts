import type { Measured } from '../../core/measurements.ts'

/** The MIME type of {@link formatExposition}: the text format of Prometheus. */
export const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** Formats metrics in the text format of Prometheus: for each metric its help and type, then its samples, one per line. */
export function formatExposition(all: readonly Measured[]): string {
  return all
    .map(({ name, type, help, samples }) => {
      const lines = samples.map(({ labels = {}, value }) => `${name}${formatLabels(labels)} ${formatValue(value)}\n`)
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('')}`
    })
    .join('')
}

function formatLabels(labels: Readonly<Record<string, string>>): string {
  const written = Object.entries(labels).map(([name, value]) => `${name}="${escapeHelp(value).replaceAll('"', '\\"')}"`)
  return written.length === 0 ? '' : `{${written.join(',')}}`
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function formatValue(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}
