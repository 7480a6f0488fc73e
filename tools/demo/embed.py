"""Writes a C++ file that holds a kernel image: embed.py IMAGE TOOLKIT OUT."""
import sys

image, toolkit, out = sys.argv[1:]
data = open(image, 'rb').read()
rows = [','.join(map(str, data[k:k + 24])) for k in range(0, len(data), 24)]
with open(out, 'w') as f:
    f.write('#include "image.h"\n\nnamespace demo {\nnamespace {\n'
            'alignas(16) constexpr unsigned char kImage[] = {\n' + ',\n'.join(rows) + '};\n}\n'
            'Image kernelImage() { return {kImage, "%s"}; }\n}  // namespace demo\n' % toolkit)
