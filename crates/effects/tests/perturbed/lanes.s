# Instructions that access memory lane by lane: of each kind, with masks of each kind.
.intel_syntax noprefix
    vmaskmovps ymm1, ymm2, [rax+rcx*4+8]
    vmaskmovpd [rax], xmm2, xmm3
    vpmaskmovd [rax+4], ymm2, ymm3
    vpmaskmovq xmm1, xmm2, fs:[rax]
    maskmovdqu xmm1, xmm2
    vmaskmovdqu xmm1, xmm2
    maskmovq mm1, mm2
    vmovdqu8 [rax+64]{k1}, zmm2
    vmovdqu16 ymm3{k2}{z}, [rbx]
    vmovdqu32 zmm3{k3}, [eax+4]
    vmovupd [rbx-32]{k4}, ymm2
    vmovss xmm1{k1}, [rdi]
    vpcmpub k1{k2}, zmm1, [rsi], 3
    vpcompressd [rdi]{k1}, zmm1
    vpexpandb zmm1{k2}{z}, [rdi]
    vgatherdps ymm1, [rax+ymm2*4+16], ymm3
    vgatherqpd xmm1, [rax+xmm2*8], xmm3
    vpgatherqd xmm1, [ymm2*2+0x1000], xmm3
    vpgatherdq ymm1, [ebx+xmm2], ymm3
    vpgatherdd zmm1{k1}, [rax+zmm2*4]
    vpgatherqd ymm1{k2}, fs:[rax+zmm2]
    vpscatterdq [rax+ymm2*8-8]{k3}, zmm1
    vscatterqps [rbx+xmm2]{k4}, xmm1
