// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LowLevelCall} from "@openzeppelin/contracts/utils/LowLevelCall.sol";
import {IERC3009} from "./InvoiceRegistry.sol";

/// @notice An EIP-3009 authorization with its signature.
/// @param token The token that it transfers.
/// @param signature 65 bytes r, s, v of a key, or a signature for a contract account (ERC-1271).
/// @param deployer 0, or the factory that deploys the account `from` (ERC-6492).
/// @param deployData The call of the factory.
struct SignedAuthorization {
    address token;
    address from;
    address to;
    uint256 value;
    uint256 validAfter;
    uint256 validBefore;
    bytes32 nonce;
    bytes signature;
    address deployer;
    bytes deployData;
}

/// @notice The form of EIP-3009 with a signature of any length, as in Circle's FiatToken v2.2.
interface IERC3009Bytes {
    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;
}

/// @title Quittance authorization relay
/// @notice Submits several signed authorizations in one transaction. Anyone may call it: a signature allows one
/// transfer and no other.
/// @dev It has no owner and no storage, and holds no tokens. Since it makes any call that a `deployer` names, it must
/// never be given tokens, allowances or rights.
contract AuthorizationRelay {
    /// @notice The gas that `relay` requires for each authorization in addition to its limit, and for each byte of its
    /// signature and its deployer's call.
    uint256 public constant GAS_BESIDES = 15_000;
    uint256 public constant GAS_PER_BYTE = 8;

    /// @dev How many bytes of a token's revert data are kept.
    uint256 private constant MAX_REASON = 256;

    /// @notice The token refused an authorization.
    /// @param reason The first 256 bytes of the token's revert data.
    event Refused(address indexed from, bytes32 indexed nonce, bytes reason);

    /// @notice A transaction with these authorizations needs more gas.
    error NotEnoughGas(uint256 needed);

    /// @notice There is no contract at the token's address.
    error NoToken(address token);

    /// @notice Submits authorizations. A refused one changes nothing, and does not prevent the others.
    /// @param limits The maximum gas of each.
    /// @dev A call passes on no more than 63/64 of the remaining gas (EIP-150). The gas for all limits is required at
    /// the beginning, so that no authorization can use up the gas of the others.
    function relay(SignedAuthorization[] calldata authorizations, uint256[] calldata limits) external {
        uint256 needed = 0;
        for (uint256 i = 0; i < authorizations.length; ++i) {
            uint256 size = authorizations[i].signature.length + authorizations[i].deployData.length;
            needed += limits[i] + limits[i] / 63 + GAS_BESIDES + GAS_PER_BYTE * size;
        }
        if (gasleft() < needed) revert NotEnoughGas(needed);
        for (uint256 i = 0; i < authorizations.length; ++i) {
            SignedAuthorization calldata a = authorizations[i];
            try this.relayOne{gas: limits[i]}(a) {}
            catch (bytes memory reason) {
                emit Refused(a.from, a.nonce, reason);
            }
        }
    }

    /// @notice Submits one authorization. It reverts if the token refuses it, with the first 256 bytes of the token's
    /// reason.
    /// @dev The token decides whether an account that the deployer has not deployed can sign. A factory can burn all
    /// gas if its account exists, so it is not called for an existing account.
    function relayOne(SignedAuthorization calldata a) external {
        if (a.deployer != address(0) && a.from.code.length == 0) {
            LowLevelCall.callNoReturn(a.deployer, a.deployData);
        }
        if (a.token.code.length == 0) revert NoToken(a.token);
        if (!LowLevelCall.callNoReturn(a.token, _transferCall(a))) {
            assembly ("memory-safe") {
                let size := returndatasize()
                if gt(size, MAX_REASON) { size := MAX_REASON }
                let reason := mload(0x40)
                returndatacopy(reason, 0, size)
                revert(reason, size)
            }
        }
    }

    /// @dev 65 bytes are passed as v, r and s, the form that every token with EIP-3009 accepts.
    function _transferCall(SignedAuthorization calldata a) private pure returns (bytes memory) {
        if (a.signature.length != 65) {
            return abi.encodeCall(
                IERC3009Bytes.transferWithAuthorization,
                (a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, a.signature)
            );
        }
        return abi.encodeCall(
            IERC3009.transferWithAuthorization,
            (
                a.from,
                a.to,
                a.value,
                a.validAfter,
                a.validBefore,
                a.nonce,
                uint8(a.signature[64]),
                bytes32(a.signature[:32]),
                bytes32(a.signature[32:64])
            )
        );
    }
}
