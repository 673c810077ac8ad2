import { readDocument } from '../src/readings/worker.ts'
const limits = { characters: 1_000_000, unpacked: 100_000_000 }
for (const h of [
 '<p>Energy <math alttext="E=mc^2"><mi>E</mi><mo>=</mo></math> is.</p>',
 '<p>F <math><semantics><mfrac><mi>a</mi><mi>b</mi></mfrac><annotation encoding="application/x-tex">\\frac{a}{b}</annotation><annotation-xml encoding="MathML-Content"><ci>zz</ci></annotation-xml></semantics></math> end</p>',
 '<p>F <math><msup><mi>x</mi><mn>2</mn></msup><mo>&lt;</mo><mn>3</mn></math> end</p>',
 '<p>F <m:math><m:mi>x</m:mi></m:math> end</p>',
 '<p>K <span class="katex"><span class="katex-mathml"><math><semantics><mrow><mi>x</mi></mrow><annotation encoding="application/x-tex">x_1</annotation></semantics></math></span><span class="katex-html" aria-hidden="true">x1</span></span></p>',
 '<title>T</title><p>a</p><svg><title>tip</title><style>x{}</style><defs><text>no</text></defs><g><text x="1">One <tspan>two</tspan></text><text>Three</text></g><foreignObject><div>four</div></foreignObject></svg><p>b</p>',
]) for (const form of ['text','markdown'] as const) { const r = await readDocument({format:'html',form,bytes:Buffer.from(h),limits}); console.log(JSON.stringify(r)) }
const g = Buffer.concat([Buffer.from('<html><head>'+'<meta name="x" content="'+'y'.repeat(1500)+'"><meta http-equiv="Content-Type" content="text/html; charset=windows-1251"></head><p>'), Buffer.from([0xcf,0xf0,0xe8,0xe2,0xe5,0xf2])])
console.log(await readDocument({format:'html',form:'text',bytes:g,limits}))
